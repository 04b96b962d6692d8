"""Preferences: how a person likes things (SPEC G-3, LOOPS L-15). Pure.

What a person says by HTTP or command is their own word: it's believed at once, and replaces what
stood there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ...contracts import Instant
from ...contracts.board import BoardPreference
from ...contracts.board.preference import Lesson, LessonKind, PreferenceCategory
from ...fields.bodies import Answer, MakingBody, RequestBody
from ...fields.schema import NO_NUL, length
from ...preferences import check as checks
from ...preferences import confidence
from ...preferences.confidence import Level
from ...subjects import PartText, Scope
from ...texts.columns import Column, history
from ...texts.exact import exact
from ..commands import SHORT_ID, WHOSE, Command, CommandGroup, Given
from ..kind import KeptKind, Revision
from ..outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    ListOperation,
    MakeOperation,
    Occasion,
    Paged,
    RevisionView,
)

OPEN_MAX: Final = 500


def preferences_of(period: timedelta) -> KeptKind[BoardPreference]:
    """Return how preferences are kept: what is forgotten by now doesn't count.

    Args:
        period: without a confirmation, that takes a little of how sure one is.
    """

    def merge(before: BoardPreference | None, lesson: BoardPreference) -> BoardPreference:
        return confidence.taught(before, checks.check(lesson), period)

    return KeptKind(
        BoardPreference,
        OPEN_MAX,
        lambda one, now: confidence.is_held(one, now, period),
        merge=merge,
    )


PREFERENCES: Final = KeptKind(BoardPreference, OPEN_MAX, lambda one, _now: not one.is_removed)
"""For readers. Whoever stores one asks `preferences_of`."""


# ---------------------------------------------------------------- what comes in and goes out


class PreferenceBody(MakingBody, frozen=True, kw_only=True):
    """How you like something, or don't."""

    category: PreferenceCategory
    key: str
    """What it is about: lower-case letters, digits, `_`, `-` and `.`, at most 64."""
    value: Any
    """JSON, in at most 1,000 bytes."""
    is_negative: bool = False
    """The value is what you don't want."""
    learned_from: str = ""
    """Where that comes from, in your words."""
    user_id: PartText | None = None
    """Yourself."""
    agent_id: PartText = "vigil"
    why: str = ""


class PreferenceChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; another value is said by `POST`."""

    is_confirmed: bool = False
    """It is so: the agent is surer of it."""
    category: PreferenceCategory | None = None
    why: str = ""


class PreferenceView(Answer, frozen=True, kw_only=True):
    """A preference, as sure as the agent is of it now."""

    id: str
    owner: str
    agent_id: str
    category: PreferenceCategory
    key: str
    value: Any
    is_negative: bool
    confidence: float
    level: Level
    """From .7 on it's used without a word; below .5 the agent asks first."""
    learned_from: tuple[Lesson, ...]
    last_confirmed_at: Instant
    created_at: Instant
    is_removed: bool
    revision: int


class PreferenceRevision(RevisionView, frozen=True, kw_only=True):
    """One state that a preference was in, and who made it so."""

    value: Any
    is_negative: bool
    confidence: float
    how: LessonKind | None


class PreferenceDetail(PreferenceView, frozen=True, kw_only=True):
    """A preference, and how it came to be as it is."""

    history: tuple[PreferenceRevision, ...]
    """The oldest first; of more than 64 the newest."""


class PreferenceListing(Paged, frozen=True, kw_only=True):
    """Preferences, the surer first."""

    preferences: tuple[PreferenceView, ...]


# ---------------------------------------------------------------- what is done


def _sure(one: BoardPreference, occasion: Occasion) -> float:
    return confidence.confidence_at(one, occasion.now, occasion.config.preferences.period)


def _facts(found: Revision[BoardPreference], occasion: Occasion) -> dict[str, Any]:
    sure = _sure(found.entity, occasion)
    return {"confidence": sure, "level": confidence.level_of(sure)}


def _state(one: BoardPreference, _occasion: Occasion) -> dict[str, Any]:
    return {"how": one.learned_from[-1].how if one.learned_from else None}


def _shows(one: BoardPreference, category: PreferenceCategory | None, occasion: Occasion) -> bool:
    is_held = confidence.is_held(one, occasion.now, occasion.config.preferences.period)
    return is_held and category in (None, one.category)


def _rank(found: Revision[BoardPreference], occasion: Occasion) -> tuple[float, str, str]:
    return -_sure(found.entity, occasion), found.entity.key, found.entity.id


def _made(wanted: PreferenceBody, whose: Scope, _id: str, occasion: Occasion) -> BoardPreference:
    """Return the person's word as a lesson; what it makes of what is known, is for the store."""
    how: LessonKind = "corrected" if wanted.is_negative else "said"
    return BoardPreference(
        id=checks.id_of(whose, wanted.key),
        owner=whose.owner,
        agent=whose.agent,
        category=wanted.category,
        key=wanted.key,
        value=wanted.value,
        confidence=0.0,
        learned_from=(Lesson(how=how, at=occasion.now, text=wanted.learned_from),),
        last_confirmed_at=occasion.now,
        created_at=occasion.now,
    )


def _changed(one: BoardPreference, wanted: PreferenceChange, occasion: Occasion) -> BoardPreference:
    if wanted.category is not None:
        one = replace(one, category=wanted.category)
    if not wanted.is_confirmed:
        return one
    how: LessonKind = "corrected" if one.is_negative else "said"
    lesson = replace(one, learned_from=(Lesson(how=how, at=occasion.now),))
    return confidence.taught(one, lesson, occasion.config.preferences.period)


# ---------------------------------------------------------------- on the command line


def _value(one: Mapping[str, Any]) -> str:
    """Write a value on one line.

    >>> _value({"value": "short", "is_negative": True}), _value({"value": 3, "is_negative": False})
    ('not "short"', '3')
    """
    return ("not " if one["is_negative"] else "") + exact(one["value"])


def _described(one: Mapping[str, Any]) -> str:
    return f"{one['key']}: {_value(one)} ({one['level']})."


def _read(text: str) -> Any:
    """Return a value as JSON has it; as a text, if it's none.

    >>> _read("true"), _read("short"), _read('{"a": 1}')
    (True, 'short', {'a': 1})
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


_SAID: Final = (
    Given("category", "What it belongs to."),
    Given("key", "What it is about: answers.length"),
    Given("value", "JSON, or a text.", kind=str, read=_read),
)
COMMANDS: Final = CommandGroup(
    help="How you like things, as far as an agent knows: list, show, set, correct, confirm, remove."
    " Default: list.",
    list_text="List preferences, the surer first: your own, or with an admin token everybody's.",
    columns=(
        SHORT_ID,
        Column("CATEGORY", "category"),
        Column("KEY", "key"),
        Column("VALUE", _value, length_max=60),
        Column("CONFIDENCE", lambda one: f"{one['confidence']:.2f} {one['level']}"),
        Column("CONFIRMED", "last_confirmed_at", is_instant=True, rank=1),
    ),
    show_text="Show one: what taught it to the agent, and who changed it.",
    fields=(
        Column("key", "key"),
        Column("value", _value),
        Column("category", "category"),
        Column("confidence", lambda one: f"{one['confidence']:.2f} ({one['level']})"),
        *WHOSE,
        Column("confirmed", "last_confirmed_at", is_instant=True),
        Column("made", "created_at", is_instant=True),
        Column("revision", "revision"),
    ),
    parts={
        "learned_from": (
            Column("LEARNED", "at", is_instant=True),
            Column("HOW", "how"),
            Column("FROM", lambda one: exact(one.get("text", ""))),
            Column("SESSION", "session_key"),
        ),
        "history": history(
            Column("VALUE", _value, length_max=60), Column("CONFIDENCE", "confidence")
        ),
    },
    words="key",
    is_named=True,
    commands=(
        Command(
            "set",
            "Say how you like something; what the agent believed of it is replaced.",
            "make",
            gives=_SAID,
            always={"is_negative": False},
            summary=_described,
        ),
        Command(
            "correct",
            "Say how you don't want something; that stands until you say otherwise.",
            "make",
            gives=_SAID,
            always={"is_negative": True},
            summary=_described,
        ),
        Command(
            "confirm",
            "Say that a preference holds.",
            "change",
            always={"is_confirmed": True},
            has_why=False,
            summary=lambda one: f"{one['key']}: {one['confidence']:.2f} ({one['level']}).",
        ),
        Command(
            "remove",
            "Remove a preference; the agent may learn it anew.",
            "end",
            summary=lambda one: f"Removed {one['key']}.",
        ),
    ),
)

KIND: Final = BoardKind(
    kept=PREFERENCES,
    bounded=lambda config: preferences_of(config.preferences.period),
    called="a preference",
    plural="preferences",
    view=PreferenceView,
    detail=PreferenceDetail,
    state=PreferenceRevision,
    facts=_facts,
    state_facts=_state,
    lists=ListOperation(
        text="List preferences, the surer first; not what was removed or is forgotten.",
        answer=PreferenceListing,
        by="category",
        choices=PreferenceCategory,
        shows=_shows,
        rank=_rank,
    ),
    makes=MakeOperation(
        text="Say how you like something: 201, or 200 if the key was known; 422 beyond 500.",
        body=PreferenceBody,
        make=_made,
        is_new=lambda one: len(one.learned_from) == 1,
        errors=(412,),
    ),
    changes=ChangeOperation(
        text="Confirm a preference, or put it elsewhere; 412 if it was changed since it was read.",
        body=PreferenceChange,
        change=_changed,
    ),
    ends=EndOperation(
        name="remove_preference",
        text="Remove a preference; the agent may learn it anew, and its history stays.",
        end=lambda one, _occasion: replace(one, is_removed=True),
        why="removed",
    ),
    limits={
        PreferenceBody: {
            "key": {"pattern": r"^[a-z0-9][a-z0-9_.-]{0,63}$"},
            "value": {"type": ["string", "number", "boolean", "array", "object"], "minLength": 1},
            "learned_from": length(checks.LEARNED_FROM_LENGTH_MAX, NO_NUL),
        }
    },
    examples={
        PreferenceBody: {
            "how it is to be": {"category": "communication", "key": "answers", "value": "short"},
            "how it is not to be": {
                "category": "code",
                "key": "auto_merge",
                "value": True,
                "is_negative": True,
            },
        },
        PreferenceChange: {"it is so": {"is_confirmed": True}},
    },
    commands=COMMANDS,
)
