"""A kind of the board in one file: what a person never wants, which are corrections among their
preferences. Pure."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from vigil.board.commands import SHORT_ID, WHOSE, Command, CommandGroup, Given
from vigil.board.kind import Revision
from vigil.board.kinds.preference import PREFERENCES, preferences_of
from vigil.board.outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    ListOperation,
    MakeOperation,
    Occasion,
    Paged,
    RevisionView,
)
from vigil.contracts.board import BoardPreference
from vigil.contracts.board.preference import Lesson, PreferenceCategory
from vigil.fields.bodies import Answer, MakingBody, RequestBody
from vigil.preferences.check import id_of
from vigil.subjects import PartText, Scope
from vigil.texts.columns import Column, history


class DislikeBody(MakingBody, frozen=True, kw_only=True):
    """What is never to be."""

    thing: str
    agent_id: PartText = "vigil"
    why: str = ""


class DislikeChange(RequestBody, frozen=True, kw_only=True):
    """Where it belongs."""

    category: PreferenceCategory
    why: str = ""


class DislikeView(Answer, frozen=True, kw_only=True):
    """Something that is never to be."""

    id: str
    owner: str
    agent_id: str
    thing: str
    category: PreferenceCategory
    revision: int


class DislikeRevision(RevisionView, frozen=True, kw_only=True):
    """What was said of it."""

    category: PreferenceCategory


class DislikeDetail(DislikeView, frozen=True, kw_only=True):
    """Something that is never to be, and since when."""

    history: tuple[DislikeRevision, ...]


class DislikeListing(Paged, frozen=True, kw_only=True):
    """All of them."""

    dislikes: tuple[DislikeView, ...]


def _facts(found: Revision[BoardPreference], _occasion: Occasion) -> dict[str, Any]:
    return {"thing": str(found.entity.value)}


def _made(wanted: DislikeBody, whose: Scope, _id: str, occasion: Occasion) -> BoardPreference:
    key = "never." + wanted.thing.lower().replace(" ", "-")
    return BoardPreference(
        id=id_of(whose, key),
        owner=whose.owner,
        agent=whose.agent,
        category="workflow",
        key=key,
        value=wanted.thing,
        confidence=0.0,
        learned_from=(Lesson(how="corrected", at=occasion.now),),
        last_confirmed_at=occasion.now,
        created_at=occasion.now,
    )


KIND: Final = BoardKind(
    kept=PREFERENCES,
    bounded=lambda config: preferences_of(config.preferences.period),
    called="a dislike",
    plural="dislikes",
    view=DislikeView,
    detail=DislikeDetail,
    state=DislikeRevision,
    facts=_facts,
    lists=ListOperation(
        text="List what is never to be.",
        answer=DislikeListing,
        by="category",
        choices=PreferenceCategory,
        shows=lambda one, category, _: (
            one.is_negative and not one.is_removed and category in (None, one.category)
        ),
        rank=lambda found, _: found.entity.key,
    ),
    makes=MakeOperation(text="Say what is never to be.", body=DislikeBody, make=_made),
    changes=ChangeOperation(
        text="Say where it belongs.",
        body=DislikeChange,
        change=lambda one, wanted, _: replace(one, category=wanted.category),
    ),
    ends=EndOperation(
        name="remove_dislike",
        text="Say that it may be.",
        end=lambda one, _: replace(one, is_removed=True),
        why="it may be",
    ),
    examples={
        DislikeBody: {"a call": {"thing": "calls before nine"}},
        DislikeChange: {"it is about when": {"category": "schedule"}},
    },
    commands=CommandGroup(
        help="What is never to be: list, show, never, allow. Default: list.",
        list_text="List what is never to be.",
        columns=(SHORT_ID, Column("NEVER", "thing")),
        show_text="Show one.",
        fields=(Column("never", "thing"), *WHOSE),
        parts={"history": history(Column("CATEGORY", "category"))},
        words="thing",
        is_named=True,
        commands=(
            Command("never", "Say what is never to be.", "make", (Given("thing", "What."),)),
            Command("allow", "Say that it may be.", "end", summary=lambda _: "It may be."),
        ),
    ),
)
