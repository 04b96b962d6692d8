"""Where the sentences of a text end, and whether one just adds to the others. Pure.

The rules are narrow: a text is taken apart only if it's sure where its sentences end, and a
sentence adds to the others only if it's of a form that is known to take nothing back: somebody or
something, a verb of how things are, and no word that limits, denies, compares or tells of another
time. Everything else may say that what stands before it isn't so, or isn't so any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from vigil.words.function_words import DAYS_AND_MONTHS


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


SENTENCES_MAX: Final = 4
"""Of a text that is taken apart; who writes more tells a story."""
_WORDS_MIN: Final = 3
_WORDS_MAX: Final = 10
_SUBJECT_MAX: Final = 3
"""Words before the verb of a sentence that adds to others."""
_PLAIN: Final = re.compile(r"[\w .,'%€$£@/+-]+")
"""Without what asks, quotes, lists or puts in brackets."""
_ABBREVIATED: Final = _set(
    "mr mrs ms dr prof st jr sr rev hon sen gov gen sgt capt lt no nr nos vol pp vs etc "
    "inc ltd co corp dept ca approx ave rd blvd mt ft tel ext hr fr bzw usw ggf evtl str jan feb "
    "apr jun jul aug sep sept oct nov dec"
)
_OF_A_DATE: Final = DAYS_AND_MONTHS | _set(
    "januar februar märz april mai juni juli august september oktober november dezember"
)
_POINTING: Final = _set(
    "it its it's he him his he's she her hers she's they them their theirs they're this that these "
    "those there here such so both neither either none nothing one another other others which who "
    "what whose former latter er ihn ihm sein seine sie ihr ihre ihnen es das dies diese dieser "
    "dieses dort hier"
)
"""What these mean depends on what stands before them."""
_PERSONS: Final = _set("he she they i we er sie ich wir")
"""With what a sentence may begin that adds to others, though it points at one of them."""
_WHOSE: Final = _set("her his their my our ihr ihre sein seine mein meine unser unsere")
_BEING: Final = _set("is are am")
_HAVING: Final = _set("has have")
_KINDS: Final = _set(
    "a an the my our her his two three four five six seven eight nine ten eleven twelve"
)
"""After "is" and "has" comes a thing: no "kidding", "mistaken" or "moved"."""
_NAMED: Final = _set("called named from")
_DOING: Final = _set(
    "likes like loves love lives live works work speaks speak drinks drink eats eat plays play "
    "owns own drives drive studies study teaches teach needs need uses use mag mögen liebt lebt "
    "lebe wohnt wohne wohnen arbeitet arbeite spricht spreche trinkt trinke isst esse spielt "
    "spiele braucht brauche"
)
_VERBS: Final = _BEING | _HAVING | _DOING
_LIMITING: Final = _set(
    "and und because so weil denn to opinion view claim theory idea wish hope plan different "
    "else stop quit left no not never none nothing nobody cannot only just but except unless if "
    "or nor until when while then than though although however instead rather otherwise wrong "
    "false true untrue right correct incorrect mistaken mistake error lie lies liar joke prank "
    "rumour rumor guess fake fiction dream story doubt odds trouble maybe perhaps probably "
    "possibly supposedly allegedly apparently both all opposite reverse contrary same more less "
    "most least better worse now nowadays currently formerly previously former ex past once used "
    "yet still already again any anymore longer soon later before after since ago today tomorrow "
    "yesterday new old gone dead over changed been had was were did would could should might may "
    "must will shall kein keine keinen keinem keiner nicht nie niemals niemand nichts nur aber "
    "außer wenn oder bis als sondern doch falsch wahr richtig irrtum lüge witz scherz gerücht "
    "vielleicht wohl angeblich beide alle gegenteil mehr weniger lieber besser jetzt nun heute "
    "morgen gestern früher damals inzwischen mittlerweile noch schon wieder seit bald später "
    "neue neuer neues alte alter altes war waren hatte wäre würde"
)
"""With one of them a sentence may take back, or limit, what stands beside it, or go on to."""


def has_several(content: str) -> bool:
    """Tell whether more than one thing seems to be said; in doubt, yes.

    >>> has_several("The code is 4711. Ann likes tea"), has_several("Dr. Smith's code is 4711.")
    (True, False)
    """
    return any(_ends(word, follower) for word, follower in pairwise(content.split()))


def sentences(content: str) -> tuple[str, ...]:
    """Return the sentences of a text that has several; nothing, if it isn't sure what they are.

    >>> sentences("Ann likes tea. She lives in York")
    ('Ann likes tea.', 'She lives in York')
    >>> sentences("Dr. Smith likes tea"), sentences("Ann likes tea. Does she?")
    ((), ())
    """
    text = content.strip()
    if not _PLAIN.fullmatch(text):
        return ()
    found: list[str] = []
    words: list[str] = []
    for word, follower in pairwise([*text.split(), ""]):
        words.append(word)
        is_end = _ends(word, follower) if follower else True
        if is_end and follower and not follower[0].isupper():
            return ()
        if is_end:
            found.append(" ".join(words))
            words = []
    is_sure = all(len(one.split()) >= _WORDS_MIN for one in found)
    return tuple(found) if is_sure and 1 < len(found) <= SENTENCES_MAX else ()


def _ends(word: str, follower: str) -> bool:
    """Whether a sentence ends with a word, if something follows it."""
    if word[-1] in "!?;":
        return True
    if not word.endswith("."):
        return False
    stem = word[:-1]
    if stem.isdigit():
        return follower.lower() not in _OF_A_DATE  # "am 12. Mai"
    return len(stem) > 1 and "." not in stem and stem.lower() not in _ABBREVIATED


def is_pointing(sentence: str) -> bool:
    """Tell whether what it means depends on what stands before it.

    >>> is_pointing("She lives in York"), is_pointing("Ann lives in York")
    (True, False)
    """
    return not _POINTING.isdisjoint(_lowered(sentence))


def verb_of(sentence: str) -> str:
    """Return the verb of how things are that a sentence has, by which others are told apart that
    may say it otherwise; "" if it has none."""
    verb = next((word for word in _lowered(sentence)[1:] if word in _VERBS), "")
    return "is" if verb in _BEING else verb


def adds(sentence: str) -> bool:
    """Tell whether a sentence says something more, and takes nothing back.

    >>> adds("She lives in York"), adds("Ann's boat has two masts")
    (True, True)
    >>> adds("She is kidding"), adds("That is a rumour"), adds("She has moved to York")
    (False, False, False)
    """
    words = _lowered(sentence)
    at = next((at for at, word in enumerate(words) if word in _VERBS), 0)
    if not 0 < at <= _SUBJECT_MAX or not at + 1 < len(words) <= _WORDS_MAX:
        return False
    if any("," in word or "n't" in word for word in sentence.replace("’", "'").split()):
        return False
    subject, rest = words[:at], words[at + 1 :]
    return (
        _LIMITING.isdisjoint(words)
        and _is_clear(subject)
        and _is_of_things(words[at], rest[0])
        and (_POINTING - _WHOSE).isdisjoint(rest)
    )


def _is_clear(subject: Sequence[str]) -> bool:
    """Whether it's somebody or something, and not what was just said."""
    if subject[0] in _PERSONS:
        return len(subject) == 1
    return subject[0] not in _POINTING - _WHOSE and _POINTING.isdisjoint(subject[1:])


def _is_of_things(verb: str, follower: str) -> bool:
    if verb in _BEING:
        return follower in _KINDS or follower in _NAMED or follower.isdigit()
    return verb not in _HAVING or follower in _KINDS or follower.isdigit()


def _lowered(sentence: str) -> list[str]:
    text = sentence.replace("\u2019", "'").lower()
    return [stem for word in text.split() if (stem := word.strip(".,"))]
