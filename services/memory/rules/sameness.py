"""Whether two memories say the same, or one of them how it is now (SPEC M-5, M-6). Pure.

The rules are narrow, because what they join is shown once: another number, another name, another
letter of a code or a "not" make another fact, and what quotes somebody, tells of an instant of its
own or sums others up is joined with nothing. Which memories are compared is found by keys that
those share which may be related; :func:`judge` decides.

* The same: word for word, but for articles, the full stop and the first letter's case.
* Within a wider one, which may be the older by less than a day: its sentences, word for word, are
  the other's first, and the rest only adds to them (:mod:`.sentences`). Both are stable, of one
  type, and both or none from outside; the wider is no less important.
* Replaced by the newer: it says the opposite ("is" and "is not"), or another value of what has one
  value at a time: "The locker code is 4711" and "The locker code is 4712 now". An older one that
  says something else as well stands, with the newer as its update.
* Content from outside neither strengthens nor replaces what the person said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

import msgspec

from vigil.contracts import Memory, MemoryType
from vigil.teams import TEAM
from vigil.words.function_words import DAYS_AND_MONTHS

from .sentences import adds, has_several, is_pointing, sentences, verb_of

Likeness = Literal["same", "wider", "narrower", "replaced", "corrected"]
"""What the newer is to the older; wider: it says what the older does, and more; corrected: it
replaces a part of the older, which says something else as well."""

LENGTH_MAX: Final = 1_000
"""Characters of what is compared; who writes more tells more than one thing."""
AGAIN: Final = timedelta(days=1)
"""After which what is said again isn't just what a wider one has said."""
_JOINED: Final[frozenset[MemoryType]] = frozenset(
    {"identity", "goal", "decision", "todo", "preference", "fact"}
)
_QUOTED: Final = re.compile(r"^[\w .'-]{1,40}: ")
"""`Name: …`: what somebody said at a moment."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FILLERS: Final = _set("a an the")
_NOT: Final = _set("not never no nicht nie niemals isn't aren't doesn't don't won't")
_HELPERS: Final = _set("do does don't doesn't longer more anymore mehr")
_NEGATED_IS: Final = {"isn't": "is", "aren't": "are", "won't": "will"}
_NOW: Final = _set("now currently jetzt nun")
_IS: Final = _set("is = ist est es è é lautet heißt")
"""After what comes one value; "are" has several."""
_ANYTHING: Final = _set(
    "one some another any every no there this that it he she they which what who someone everyone "
    "ein eine es er sie il elle un una une"
)
"""What begins so isn't known to be about the same thing."""
_OWN: Final = _set("i i'm my me mine we our us ich mein meine mir mich wir unser")
"""Of a team's memory each member's are others."""
_SINGLE: Final = _set(
    "name code password pin address email phone birthday age colour color deadline price "
    "passwort adresse farbe geburtstag alter preis"
)
"""Of which a thing has one at a time."""
_CALLED: Final = _set("called named")
_SEVERAL: Final = _set("and or also too und oder auch")
_VALUE_MAX: Final = 6


class Statement(NamedTuple):
    """What a memory says, taken apart."""

    words: tuple[str, ...]
    is_negated: bool
    positive: tuple[str, ...]
    """The words without what negates them, so that both forms of a verb are one."""
    about: tuple[str, ...]
    """What stands before "is"; empty: it doesn't say what something is."""
    value: tuple[str, ...]


class Supersession(msgspec.Struct, frozen=True):
    """Memories that one takes the place of."""

    by_id: str
    memory_ids: tuple[str, ...]
    is_same: bool
    is_wider: bool = False
    """It says what they say, and more."""
    is_beside: bool = False
    """They stand as well, since they say something else, too; it's how a part of that is now."""


def said(content: str) -> Statement:
    """Take a text apart.

    >>> said("The locker code is 4711.").about, said("The locker code is now 4712").value
    (('locker', 'code'), ('4712',))
    >>> said("Ann doesn't eat fish").positive == said("Ann eats fish").positive
    True
    """
    words = tuple(word for word in _words(content) if word.lower() not in _FILLERS)
    is_negated = any(word.lower() in _NOT for word in words)
    at = next((at for at, word in enumerate(words) if word in _IS), 0)
    is_known = 0 < at < len(words) - 1 and words[0].lower() not in _ANYTHING
    value = tuple(word for word in words[at + 1 :] if word not in _NOW)
    return Statement(
        words=words,
        is_negated=is_negated,
        positive=tuple(_positive(words)),
        about=words[:at] if is_known and value else (),
        value=value if is_known else (),
    )


def _words(content: str) -> list[str]:
    text = unicodedata.normalize("NFC", content).replace("\u2019", "'").strip()
    words = [word.rstrip(",;") for word in text.removesuffix(".").split()]
    words = [word for word in words if word]
    if words and words[0][1:].islower():
        words[0] = words[0].lower()  # but not of IT, or of a code
    elif words and len(words[0]) == 1 and words[0] != "I":
        words[0] = words[0].lower()
    return words


def _positive(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        if word in _NEGATED_IS:
            yield _NEGATED_IS[word]
        elif word.lower() not in _NOT and word not in _HELPERS:
            is_verb = len(word) > 3 and word.islower() and word.isalpha()
            yield word.removesuffix("s") if is_verb else word


def keys(content: str, type_: MemoryType, owner: str) -> tuple[str, ...]:
    """Return what those have in common that may be related; none: it's compared with nothing.

    Args:
        owner: whose memory it is part of.
    """
    if type_ not in _JOINED or len(content) > LENGTH_MAX:
        return ()
    text = said(content)
    if _QUOTED.match(content) or not text.words or text.words[-1].endswith("?"):
        return ()
    if owner == TEAM and any(word.lower() in _OWN for word in text.words):
        return ()
    found = [_key("all", text.positive)]
    if text.about:
        found.append(_key("about", text.about))
    found += (_key("all", said(one).positive) for one in sentences(content)[:1])
    return tuple(dict.fromkeys(found))


def _key(kind: str, words: Sequence[str]) -> str:
    return blake2b("\0".join((kind, *words)).encode(), digest_size=16).hexdigest()


def judge(newer: Memory, older: Memory) -> Likeness | None:
    """Tell what the newer of two is to the older, whose keys meet; trust isn't looked at.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> def fact(text): return Memory(id="", content=text, created_at=at)
    >>> judge(fact("the boat is called Daisy"), fact("The boat is called Daisy."))
    'same'
    >>> judge(fact("The boat is called Iris"), fact("The boat is called Daisy"))
    'replaced'
    >>> judge(fact("Ann likes tea. She lives in York"), fact("Ann likes tea"))
    'wider'
    >>> judge(fact("Invoice 12 is paid"), fact("Invoice 13 is paid"))
    """
    if _span(newer) != _span(older):
        return None
    if newer.type == older.type and (likeness := _as_much(newer, older)):
        return likeness
    one, other = said(newer.content), said(older.content)
    if one.is_negated != other.is_negated:
        return "replaced" if one.positive == other.positive else None
    if one.is_negated or not one.about or one.about != other.about:
        return None
    if not _is_other_value(one, other):
        return None
    return "corrected" if has_several(older.content) else "replaced"


def _as_much(newer: Memory, older: Memory) -> Likeness | None:
    if said(newer.content).words == said(older.content).words:
        return "same"
    if newer.stability != "stable":
        return None
    if includes(newer.content, older.content):
        return "wider"
    # Said again much later it may be so again, which an old one wouldn't tell.
    is_soon = newer.created_at - older.created_at < AGAIN
    return "narrower" if is_soon and includes(older.content, newer.content) else None


def includes(wide: str, narrow: str) -> bool:
    """Whether one text says what another does, word for word, and more that takes nothing back.

    >>> includes("Ann likes tea. She lives in York", "Ann likes tea.")
    True
    >>> includes("Ann likes tea. She lives in York", "She lives in York")
    False
    >>> includes("Ann lives in Rome. She lives in York", "Ann lives in Rome")
    False
    """
    parts, within = sentences(wide), sentences(narrow) or (narrow,)
    if len(within) >= len(parts) or is_pointing(within[0]):
        return False
    # Only at the beginning: what stands before something may say that it isn't meant.
    if any(said(one).words != said(part).words for one, part in zip(within, parts, strict=False)):
        return False
    verbs = {verb_of(part) for part in within}
    rest = parts[len(within) :]
    return all(adds(part) and verb_of(part) not in verbs for part in rest)


def _span(memory: Memory) -> tuple[object, ...]:
    """Return when it holds, and what instant it tells of, if that isn't just when it was said."""
    at = memory.occurred_at
    is_said_then = at is None or abs((memory.created_at - at).total_seconds()) < 86_400
    return (
        memory.stability,
        memory.expires_at,
        memory.valid_from,
        memory.valid_to,
        None if is_said_then else at,
    )


def _is_other_value(one: Statement, other: Statement) -> bool:
    """Whether two say another value of what has one value at a time."""
    mine, its = one.value, other.value
    if mine == its or max(len(mine), len(its)) > _VALUE_MAX:
        return False
    if not _SEVERAL.isdisjoint((*mine, *its)):
        return False
    if len(mine) == len(its) and all(
        a == b or _is_number(a, b) for a, b in zip(mine, its, strict=True)
    ):
        return True
    if mine[0] in _CALLED and mine[0] == its[0]:
        return True
    return one.about[-1].lower() in _SINGLE


def _is_number(one: str, other: str) -> bool:
    return all(
        any(c.isdigit() for c in word) or word.lower() in DAYS_AND_MONTHS for word in (one, other)
    )


# ---------------------------------------------------------------- which of them stands


def replacements(
    new: Memory,
    others: Iterable[Memory],
    newer: frozenset[str],
    linked: frozenset[str] = frozenset(),
) -> list[Supersession]:
    """Return what one memory means for others whose keys it shares, all of which stand.

    Of those that say the same the newest stands; a more important or a trusted one stays. What
    says more stands for what says less, if it's no less important and as trusted.

    Args:
        newer: which of the others were saved after it.
        linked: which of the others it updates, or is updated by, as is known.
    """
    found: list[Supersession] = []
    for other in others:
        pair = (other, new) if other.id in newer else (new, other)
        likeness = judge(*pair)
        if likeness is None or (likeness == "corrected" and other.id in linked):
            continue
        stands, goes = reversed(pair) if likeness == "narrower" else pair
        is_wider = likeness in ("wider", "narrower")
        if is_wider and not _may_stand_for(stands, goes):
            continue
        if likeness == "same" and _rank(goes) > _rank(stands):
            stands, goes = goes, stands
        if stands.is_tainted and not goes.is_tainted:
            continue  # what came from outside is left beside what the person said
        is_beside = likeness == "corrected"
        found.append(Supersession(stands.id, (goes.id,), likeness == "same", is_wider, is_beside))
        if goes.id == new.id and not is_beside:
            break
    return found


def _may_stand_for(wider: Memory, narrower: Memory) -> bool:
    """What came from outside is never shown in one with what the person said."""
    is_as_trusted = wider.is_tainted == narrower.is_tainted
    return is_as_trusted and wider.importance >= narrower.importance


def _rank(memory: Memory) -> tuple[bool, float]:
    return not memory.is_tainted, memory.importance
