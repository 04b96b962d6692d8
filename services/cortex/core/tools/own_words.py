"""What of a call is the person's own word in a loop that outside content sways (FLOW F2). Pure.

Only a loop that a person began or ordered has words of theirs: the messages that it answers, the
reminder that they had kept, or the order that began the run. What a model composes afterwards isn't
among them, and nothing that a result says ever is.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vigil.contracts import FollowUp, Start, Tool
from vigil.contracts.arguments import Arguments, schema_of
from vigil.contracts.tools import Aim
from vigil.words.aims import parts
from vigil.words.own import OwnWords
from vigil.words.rule import judge, reason

from .. import sway as sways
from ..draft import Draft
from ..sway import Sway
from .calls import server_of

_Aims = Mapping[str, Aim]
_CONTENT: Final[_Aims] = {"*": "content"}


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was judged by the words of its person."""

    sway: Sway
    """What still has a part in it: nothing from outside, if all of it is the person's own word."""
    is_ordered: bool
    """Whether the person's order covers it, as if nothing from outside had a part."""
    why_not: str = ""
    """The values that keep the order from covering it, in words; empty: none do, or nobody ordered
    it."""
    others: str = ""
    """The values that aren't the person's own word, in words; empty: all are."""

    @property
    def is_theirs(self) -> bool:
        return not self.sway.is_outside


def said(draft: Draft) -> OwnWords:
    """Return what the person said in the exchange of the open loop, or in what began it."""
    loop = draft.loop
    if loop.is_direct:
        return OwnWords(loop.words)
    return OwnWords(_ordered(loop.follow_up, draft.state.start) if loop.is_ordered else ())


def _ordered(follow_up: FollowUp | None, start: Start | None) -> tuple[str, ...]:
    if follow_up is not None:
        is_theirs = follow_up.keep and not sways.of(follow_up).is_outside
        return (follow_up.reason, follow_up.message or "") if is_theirs else ()
    if start is None:
        return ()
    if start.order:
        return (start.order,)
    return () if sways.of(start).is_outside else (start.prompt,)


def own(draft: Draft, arguments: type[Arguments], given: dict[str, Any], aims: _Aims) -> Cleared:
    """Judge a call of a tool that the core or memory answers: what isn't declared is content."""
    return _cleared(draft, given, {**_CONTENT, **aims}, _schema_of(arguments))


def foreign(draft: Draft, tool: Tool, given: dict[str, Any]) -> Cleared:
    """Judge a call of the executor's: what isn't declared is who."""
    return _cleared(draft, given, tool.aims, tool.input_schema, server_of(tool.name))


@functools.cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    return schema_of(arguments)


def _cleared(
    draft: Draft, given: dict[str, Any], aims: _Aims, schema: dict[str, Any], server: str = ""
) -> Cleared:
    loop, sway = draft.loop, draft.sway
    if not sway.is_outside:
        return Cleared(sway=sway, is_ordered=True)
    if not (loop.is_direct or loop.is_ordered):
        return Cleared(sway=sway, is_ordered=False)
    words, policy = said(draft), draft.policy
    found = judge(
        parts(given, aims, schema),
        words,
        policy.book if draft.moment.known is None else draft.moment.known,
        frozenset(loop.fields.get(server, ())),
        is_book_enough=policy.is_book_enough,
    )
    return Cleared(
        sway=Sway.NONE if found.is_own else sway,
        is_ordered=found.may_run,
        why_not=reason(found.foreign),
        others="" if found.is_own else reason(found.others or found.foreign),
    )
