"""Which sentences promise something, or tell it as done (`core.promises.words`)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core.promises.words import undertaken

SAID = (
    "I'll check again tomorrow at nine.",
    "Sure! I'll remind you at 5 pm.",
    "It isn't there yet. I will keep an eye on it and let you know as soon as it changes.",
    "I'm going to look into that and get back to you.",
    "Let's see: I'll be monitoring the page overnight.",
    "Okay, I’ll follow up on Friday.",
    "I'll then report back with the results.",
    "**I'll ping you** when the build is done.",
    "I'll send you the summary every morning.",
    "It's 3.5 degrees. I'll look it up again at 8.30 a.m.",
    "Ich melde mich morgen früh.",
    "Ich werde dich um 9 Uhr daran erinnern.",
    "Morgen um 9 erinnere ich dich.",
    "Ich sehe heute Abend noch einmal nach.",
    "Ich behalte den Preis im Auge.",
    "Ich gebe dir Bescheid, sobald die Seite sich ändert.",
    "Je te rappellerai demain à neuf heures.",
    "Je vais surveiller la page et vous prévenir.",
    "Te avisaré cuando cambie el precio.",
    "Voy a revisar la página mañana.",
    "Ti farò sapere domani.",
    "Controllerò di nuovo stasera.",
    "Ik laat het je morgen weten.",
    "Ik zal je er morgen aan herinneren.",
    "Ik houd de prijs in de gaten.",
    "Vou verificar a página amanhã e aviso você.",
    "Vou te lembrar às 9h.",
    "Done: I've set a reminder for 5 pm.",
    "I've just scheduled it.",
    "I have sent the mail to Bob.",
    "Okay. Reminder set for tomorrow!",
    "Your timer is now set.",
    "I’ve added it to your calendar.",
    "Ich habe dir eine Erinnerung für 17 Uhr eingestellt.",
    "Die Erinnerung ist gesetzt.",
    "Die Mail habe ich an Bob geschickt.",
    "J’ai programmé un rappel pour demain.",
    "He enviado el correo.",
    "Ho impostato un promemoria.",
    "Ik heb een herinnering ingesteld.",
    "Agendei um lembrete para amanhã.",
)
NONE = (
    "Tell me when you land and I'll remind you.",
    "I'll remind you if you like.",
    "Would you like me to check again tomorrow?",
    "Shall I keep an eye on it? I'll check (is that what you want?)",
    "I can remind you tomorrow.",
    "I won't check again.",
    "I will not let you know.",
    "I'll never tell you.",
    "I'll no longer check it.",
    "I'll stop reminding you.",
    "I have checked it: nothing new.",
    "I'll remember that.",
    "I'll keep that in mind, and be brief.",
    "Once you confirm, I'll send you the file.",
    "Let me know if it fails and I'll look into it.",
    'The doctor said: "I\'ll check back with you tomorrow."',
    "> I'll get back to you\n\nThat is what she wrote.",
    "He'll check tomorrow, and she will remind you.",
    "Here is the mail:\n\nDear Bob,\n\nI'll get back to you tomorrow.\n\nAnn",
    "Subject: your mail\n\nI'll get back to you tomorrow.",
    "```\nI'll check again\n```\nThat prints it.",
    "Wenn du willst, erinnere ich dich.",
    "Soll ich dich morgen erinnern?",
    "Ich habe nachgesehen.",
    "Ich werde dich nicht erinnern.",
    "Si tu veux, je te rappellerai demain.",
    "Si quieres, te avisaré.",
    "Se vuoi ti farò sapere.",
    "Laat het me weten, dan kijk ik.",
    "I've already sent it.",
    "I have sent it yesterday, at noon.",
    "I haven't sent it.",
    "I've not set a reminder.",
    "I've added a table and set the tone.",
    "I've put the three options below.",
    "Have you set a reminder?",
    "You have sent it, and she has paid.",
    "The timer is off.",
    "Ich habe sie nicht geschickt.",
    "Ich habe die Mail gestern geschickt.",
    "Je n'ai pas envoyé le courrier.",
    "I'll check: yes, it's open until eight.",
    "I'll look at the calendar. You have two meetings.",
    "I'll research this for you now. Here is what I found: three hotels.",
    "I'll tell you why: because it rains.",
    "From now on I'll write to you in German.",
    "From now on I'll keep you out of the loop.",
    "As I said, I'll remind you at five.",
    "I'll report the numbers: 1, 2, 3.",
    "No reminder is set for tomorrow.",
    "I have no reminder set for that.",
    "I've booked nothing yet.",
    "I've sent you the list above.",
    "I've ordered the list by date.",
    "I can't do that. I'll be here.",
    "Ich prüfe das gern: es stimmt.",
    "Te diré por qué: llueve.",
    "",
)


@pytest.mark.parametrize("text", SAID)
def test_a_word_that_is_given_is_found_and_told_as_its_sentence(text: str) -> None:
    for written in (text, f"It's raining.\n\n{text} Anything else?", f"{text}\nTake care!"):
        found = undertaken(written)
        assert found
        assert found in text


@pytest.mark.parametrize("text", NONE)
def test_what_offers_asks_denies_or_quotes_promises_nothing(text: str) -> None:
    assert undertaken(text) == ""


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert undertaken(text) in text
