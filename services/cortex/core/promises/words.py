"""Whether a text says that its writer will do something after it, or has just done it. Pure.

In the seven languages of :mod:`vigil.words.function_words`: by what the first person says of what
is to come, sentence by sentence. Questions and offers are no promises, nor is what waits for a word
of who reads it ("tell me, and I'll …"). What is quoted, code, or below a salutation is somebody
else's to say.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from vigil.words.denial import holds_denial, is_denied

TEXT_LENGTH_MAX: Final = 20_000
"""Characters of a text that are looked at: a promise stands at the end, or in a short text."""

_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(
    r"^[ \t]*>[^\n]*|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|»[^«\n]*«",
    re.MULTILINE,
)
_LETTER: Final = re.compile(
    r"^[ \t*_#]*(?:(?:subject|betreff|objet|asunto|oggetto|onderwerp|assunto)[*_]*:"
    r"|(?:dear|hi|hello|hallo|liebe[rs]?|sehr geehrte[rs]?|cher|chère|bonjour|querid[oa]|car[oa]"
    r"|estimad[oa]|gentile|beste|geachte|prezad[oa])\b[^\n.!?]{0,60},[ \t*_]*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""The head of a message that is drafted for somebody to send: from there on it's theirs."""
_SENTENCE: Final = re.compile(r"[^.!?…\n]+(?:[.!?…]+(?!\s|$)[^.!?…\n]+)*[.!?…]*")

_GAP: Final = r"[^,;:]{0,80}\b"
"""What may stand between the parts of a verb."""
_PROMISES: Final = {
    "en": {
        r"\bi(?:['’]ll| will| shall|(?:['’]m| am) going to) (?:(?:\w+ly|also|then|be) )*DEED": """
            remind, check, checking, double-check, recheck, verify, verifying, follow up,
            following up, get back to, getting back to, come back, be back, back with, back to,
            circle back, report back, reporting back, let you know, ping, notify, alert, warn,
            update you, tell you when, tell you once, tell you as soon, tell you if,
            tell you whether, tell you tomorrow, message you, text you, mail you, email you,
            e-mail you, send you, wake you, reach out, keep you posted, keep you updated,
            keep you informed, keep you in the loop, keep an eye, keep watch, keep watching,
            keep track, keep checking, keep monitoring, keep looking, keeping an eye, keeping watch,
            keeping track, monitor, monitoring, watch for, watch it, watch the, watch this,
            watch that, watching, track it, track the, track this, tracking, look into, look it up,
            look that up, look this up, look for, look at, look again, look out for, looking into,
            looking for, looking out for, find out, research, investigate, try again, retry
            """,
    },
    "de": {
        rf"\bich (?:werde|will)\b{_GAP}DEED": """
            erinnern, melden, nachsehen, nachschauen, nachprüfen, prüfen, überprüfen,
            bescheid geben, bescheid sagen, beobachten, überwachen, benachrichtigen, informieren,
            nachfragen, nachhaken, nachforschen, recherchieren, zurückkommen,
            auf dem laufenden halten, im auge behalten, im blick behalten, schreiben, schicken
            """,
        r"\bich DEED": """
            erinnere, benachrichtige, informiere, überprüfe, prüfe, beobachte, überwache,
            recherchiere, melde mich
            """,
        r"\bDEED ich\b": "erinnere, benachrichtige, informiere",
        r"\bmelde (?:ich )?DEED": "mich",
        rf"\b(?:ich (?:gebe|sage)|(?:gebe|sage) ich)\b{_GAP}DEED": "bescheid",
        rf"\bich (?:sehe|schaue|frage|hake|forsche)\b{_GAP}DEED": "nach",
        rf"\b(?:sehe|schaue|frage|hake) ich\b{_GAP}DEED": "nach",
        rf"\b(?:ich (?:be)?halte|(?:be)?halte ich)\b{_GAP}DEED": (
            "auf dem laufenden, im auge, im blick"
        ),
    },
    "fr": {
        r"\bje (?:(?:te|vous|le|la|les) )?DEED": """
            rappellerai, préviendrai, tiendrai, dirai, informerai, avertirai, contacterai, écrirai,
            enverrai, vérifierai, surveillerai, regarderai, reviendrai, garderai, suivrai,
            chercherai
            """,
        r"\bje vais (?:(?:te|vous|le|la|les) )?(?:\w+ment )?DEED": """
            rappeler, prévenir, tenir, informer, avertir, contacter, écrire, envoyer, vérifier,
            surveiller, regarder, revenir, garder, suivre, chercher
            """,
    },
    "es": {
        r"\b(?:te|os|le|les) DEED": """
            recordaré, avisaré, diré, informaré, escribiré, enviaré, mantendré, contactaré
            """,
        r"\bDEED": """
            comprobaré, revisaré, verificaré, vigilaré, volveré, estaré pendiente, estaré atento,
            estaré atenta, buscaré, investigaré, haré un seguimiento
            """,
        r"\bvoy a DEED": """
            recordarte, recordarle, avisarte, avisarle, informarte, informarle, escribirte,
            escribirle, enviarte, enviarle, comprobar, revisar, verificar, vigilar, volver,
            mantenerte, mantenerle, buscar, investigar, estar pendiente
            """,
    },
    "it": {
        r"\b(?:ti|vi|le) DEED": """
            ricorderò, avviserò, avvertirò, dirò, farò sapere, informerò, scriverò, manderò,
            invierò, terrò, aggiornerò
            """,
        r"\bDEED": """
            controllerò, ricontrollerò, verificherò, monitorerò, sorveglierò, tornerò, cercherò,
            terrò d'occhio, terrò d’occhio
            """,
    },
    "nl": {
        rf"\bik (?:zal|ga)\b{_GAP}DEED": """
            herinneren, controleren, nakijken, kijken, nagaan, weten, melden, volgen, waarschuwen,
            sturen, terugkomen, uitzoeken, opzoeken, houden
            """,
        r"\bik DEED": "herinner, waarschuw, controleer, check",
        r"\bDEED ik\b": "herinner, waarschuw",
        rf"\b(?:ik laat|laat ik)\b{_GAP}DEED": "weten",
        rf"\b(?:ik houd?|houd? ik)\b{_GAP}DEED": "in de gaten, op de hoogte",
        rf"\b(?:ik kom|kom ik)\b{_GAP}DEED": "terug",
    },
    "pt": {
        r"\bvou (?:(?:te|lhe|\w+mente) )?DEED": """
            lembrar, lembrá-lo, lembrá-la, avisar, avisá-lo, avisá-la, informar, escrever, enviar,
            verificar, checar, monitorar, monitorizar, acompanhar, voltar, procurar, pesquisar,
            manter, ficar de olho, ficar atento, ficar atenta
            """,
        r"\bDEED": """
            lembrarei, avisarei, informarei, verificarei, monitorarei, acompanharei, voltarei,
            manterei, ficarei de olho, ficarei atento, ficarei atenta
            """,
    },
}
"""Language -> how the first person says what they will do, and the deeds in place of `DEED`."""
_JUST: Final = r"(?:(?:\w+ly|just|now|also) )*"
_DONE: Final = {
    "en": {
        rf"\bi(?:['’]ve| have) {_JUST}DEED": """
            scheduled, rescheduled, sent, emailed, e-mailed, mailed, messaged, texted, forwarded,
            posted, submitted, paid, booked, cancelled, canceled, notified, informed
            """,
        rf"\bi(?:['’]ve| have) {_JUST}(?:set|arranged|created|added|put)\b{_GAP}DEED": """
            reminder, alarm, timer, follow-up, follow up, appointment, meeting, event, calendar
            """,
        r"\b(?:reminder|alarm|timer|follow-up) (?:is |has been )?(?:now )?DEED": """
            set, scheduled, created, cancelled, canceled
            """,
    },
    "de": {
        rf"\b(?:ich habe|habe ich)\b{_GAP}DEED": """
            eingestellt, eingeplant, eingetragen, gesetzt, gesendet, geschickt, verschickt,
            abgeschickt, weitergeleitet, gebucht, bestellt, bezahlt, storniert, abgesagt,
            benachrichtigt, informiert
            """,
        r"\berinnerung (?:ist |wurde )?DEED": "gesetzt, eingestellt, eingerichtet, gestellt",
    },
    "fr": {
        r"\bj['’]ai (?:bien )?DEED": """
            programmé, planifié, envoyé, réservé, commandé, payé, annulé, prévenu, transféré,
            ajouté un rappel, créé un rappel, mis un rappel
            """,
        r"\brappel (?:est )?DEED": "programmé, créé, enregistré",
    },
    "es": {
        r"\bhe DEED": """
            programado, enviado, reservado, pedido, pagado, cancelado, avisado, reenviado, agendado,
            creado un recordatorio, puesto un recordatorio
            """,
        r"\brecordatorio (?:está )?DEED": "programado, creado, configurado",
    },
    "it": {
        r"\bho DEED": """
            programmato, inviato, mandato, prenotato, ordinato, pagato, annullato, avvisato,
            inoltrato, impostato, creato un promemoria
            """,
        r"\bpromemoria (?:è stato )?DEED": "impostato, creato, programmato",
    },
    "nl": {
        rf"\b(?:ik heb|heb ik)\b{_GAP}DEED": """
            ingesteld, ingepland, verstuurd, gestuurd, verzonden, doorgestuurd, geboekt, besteld,
            betaald, geannuleerd, gewaarschuwd
            """,
        r"\bherinnering (?:is )?DEED": "ingesteld, gepland, gezet",
    },
    "pt": {
        r"\bDEED": """
            agendei, enviei, programei, reservei, encomendei, paguei, cancelei, encaminhei, avisei
            """,
        r"\blembrete (?:foi )?DEED": "criado, definido, agendado, programado",
    },
}
"""Language -> how they say what they have just done, where a tool must have done it."""
_BEFORE: Final = """
    already, yesterday, earlier, before, ago, this morning, last night, last week, bereits, schon,
    gestern, vorhin, déjà, hier, ya, ayer, già, ieri, al, gisteren, eerder, já, ontem, above, below,
    oben, unten, hierboven, hieronder, arriba, abajo, sopra, sotto, acima, abaixo
    """
"""What tells that it was done in another exchange, or is in this very text."""
_AT_ONCE: Final = """
    check, checking, double-check, recheck, verify, verifying, look into, look it up, look that up,
    look this up, look for, look at, looking into, looking for, find out, research, investigate,
    try again, retry, nachsehen, nachschauen, nachprüfen, prüfen, überprüfen, nachforschen,
    recherchieren, überprüfe, prüfe, recherchiere, nach, vérifierai, regarderai, chercherai,
    vérifier, regarder, chercher, comprobaré, revisaré, verificaré, buscaré, investigaré, comprobar,
    revisar, verificar, buscar, investigar, controllerò, ricontrollerò, verificherò, cercherò,
    controleren, nakijken, kijken, nagaan, uitzoeken, opzoeken, controleer, check, checar, procurar,
    pesquisar, verificarei
    """
"""Deeds whose result may stand right behind ("I'll check: yes, it's open"): they're promises where
nothing follows, or with a word for a time to come."""
_LATER: Final = """
    tomorrow, later, tonight, again, back, every, each, when, once, until, soon, minute, minutes,
    hour, hours, day, days, week, weeks, month, morning, evening, night, overnight, monday, tuesday,
    wednesday, thursday, friday, saturday, sunday, morgen, später, abend, jede, jeden, wieder,
    sobald, wenn, stunde, stunden, minuten, tag, tage, tagen, woche, wochen, monat, montag,
    dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, demain, plus tard, soir, chaque,
    dès que, quand, heure, heures, jour, jours, semaine, matin, mañana, más tarde, luego, noche,
    cada, cuando, hora, horas, minuto, minutos, día, días, semana, domani, più tardi, stasera, ogni,
    quando, ore, minuti, giorno, giorni, settimana, straks, vanavond, elke, zodra, wanneer, uur,
    uren, minuut, dag, dagen, amanhã, mais tarde, noite, dia, dias
    """
_MARKS: Final = {
    "en": (
        *("i'll ", "i’ll ", "i will ", "i shall ", "going to ", "i've ", "i’ve ", "i have "),
        *("reminder ", "alarm ", "timer ", "follow-up "),
    ),
    "de": ("ich ", " ich", "melde ", "erinnerung "),
    "fr": ("je ", "j'ai ", "j’ai ", "rappel "),
    "es": ("ré", "voy a ", "he ", "recordatorio "),
    "it": ("rò", "ho ", "promemoria "),
    "nl": ("ik ", " ik", "herinnering "),
    "pt": ("vou ", "ei", "lembrete "),
}
"""Language -> what is in each of these sentences: texts without one are looked at no further."""
_CONDITIONS: Final = {
    "en": r"""
        if you, once you, when you, whenever you, as soon as you, after you, unless you, until you,
        if that's, if that’s, if that is, tell me, ask me, let me know, say so, say the word,
        say yes, your ok, your okay, your go, would you, shall i, i'll have, i’ll have, i'll need,
        i’ll need, with your, as i said, as promised
        """,
    "de": r"""
        wenn du, wenn sie, wenn ihr, wenn das, wenn es dir, wenn es ihnen, sobald du, sobald sie,
        sobald ihr, falls du, falls sie, falls ihr, sofern du, sofern sie, sag mir, sagen sie mir,
        sag einfach, sagen sie einfach, gib mir, geben sie mir, schreib mir, schreiben sie mir,
        soll ich, möchtest, willst du, möchten sie
        """,
    "fr": r"""
        si tu, si vous, dès que tu, dès que vous, quand tu, quand vous, lorsque tu, lorsque vous,
        dis-moi, dites-moi
        """,
    "es": r"""
        si quieres, si lo, si me, si te, si le, si prefieres, si desea, cuando me, cuando quieras,
        cuando lo, dime, avísame, dígame, díganme
        """,
    "it": r"""
        se vuoi, se mi, se lo, se preferisci, se vuole, quando vuoi, quando mi, quando vuole,
        appena mi, dimmi, fammi, mi dica
        """,
    "nl": r"""
        als je, als jij, als u, als jullie, zodra je, zodra jij, zodra u, wanneer je, wanneer u,
        indien je, indien u, zeg me, zeg het me, laat me, laat het me, me weten
        """,
    "pt": r"""
        se você, se quiser, se me, se o senhor, se a senhora, quando você, quando quiser,
        assim que você, me diga, diga-me, me avise, avise-me
        """,
}
"""Language -> what has it depend on a word of who reads it."""


def _any_of(phrases: str) -> str:
    """Return a pattern of any of some phrases, written one after the other with commas."""
    return rf"(?:{'|'.join(re.escape(one) for one in ' '.join(phrases.split()).split(', '))})\b"


@functools.cache
def _said(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds a promise, and what finds a deed; nobody needs them at a start."""
    return _ways(_PROMISES[language]), _ways(_DONE[language])


def _ways(ways: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(said.replace("DEED", _any_of(deeds)) for said, deeds in ways.items())
    )


class _Other(NamedTuple):
    """What finds why such a sentence is none, or is one all the same."""

    condition: re.Pattern[str]
    before: re.Pattern[str]
    at_once: re.Pattern[str]
    later: re.Pattern[str]


@functools.cache
def _other() -> _Other:
    conditions = "|".join(rf"\b{_any_of(phrases)}" for phrases in _CONDITIONS.values())
    return _Other(
        re.compile(conditions),
        re.compile(rf"\b{_any_of(_BEFORE.strip())}"),
        re.compile(rf"\b{_any_of(_AT_ONCE.strip())}$"),
        re.compile(rf"\b{_any_of(_LATER.strip())}|\d"),
    )


_ENDS_QUESTION: Final = re.compile(r"\?[\s\"'”»)*_]*$")
_SHOWS: Final = re.compile(r":(?:\s|$)")
"""Behind a deed: what came of it follows."""
_NONE: Final = re.compile(r"\W*(?:nothing|none|nobody|no|nichts|rien|nada|niente|niets)\b")


def undertaken(text: str) -> str:
    """Return the first sentence that promises to do something later, or tells that a tool has just
    done it; empty: none does.

    >>> undertaken("It's raining. I'll check again tomorrow at nine. Anything else?")
    "I'll check again tomorrow at nine."
    >>> undertaken("Done. I've set a reminder for five.")
    "I've set a reminder for five."
    >>> undertaken("Tell me when you land, and I'll let you know."), undertaken("Shall I look?")
    ('', '')
    """
    own = text[-TEXT_LENGTH_MAX:]
    lowered = own.lower()
    languages = [name for name, marks in _MARKS.items() if any(mark in lowered for mark in marks)]
    if not languages:
        return ""
    if (letter := _LETTER.search(own)) is not None:
        own = own[: letter.start()]
    own = _QUOTED.sub(" ", _FENCED.sub("\n", own))
    sentences = [match.group().strip() for match in _SENTENCE.finditer(own)]
    told = [one for one in sentences if one and not _ENDS_QUESTION.search(one)]
    for sentence in told:
        is_last = sentence is told[-1]
        if any(_undertakes(sentence.lower(), one, is_last=is_last) for one in languages):
            return sentence
    return ""


def _undertakes(sentence: str, language: str, *, is_last: bool) -> bool:
    promise, deed = (pattern.search(sentence) for pattern in _said(language))
    found, other = promise or deed, _other()
    if found is None or _is_denied(sentence, found) or other.condition.search(sentence):
        return False
    if promise is None:
        return other.before.search(sentence) is None
    rest = sentence[found.end() :]
    if _SHOWS.search(rest):
        return False
    is_later = is_last or other.later.search(sentence[found.start() :]) is not None
    return is_later or other.at_once.search(found.group()) is None


def _is_denied(sentence: str, found: re.Match[str]) -> bool:
    start, end = found.span()
    is_none = _NONE.match(sentence[end:]) is not None
    return is_none or holds_denial(found.group()) or is_denied(sentence, start, end)


__all__ = ["undertaken"]
