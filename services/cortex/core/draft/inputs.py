"""What a turn is decided from, written down beside it so that it can be decided again. Pure.

The state before a turn, its event and the session's history are on the log anyway. What isn't:
the moment, the tools and grants that were looked at, how the model stopped or failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from vigil.contracts import Row, Tool, Usage, encode
from vigil.contracts.base import NEVER
from vigil.contracts.made import (
    MADE_BYTES_MAX,
    Made,
    SeenAnswer,
    SeenBook,
    SeenCut,
    SeenFailure,
    SeenGoal,
    SeenGrant,
    SeenHours,
    SeenMoment,
    SeenNotice,
    SeenTask,
    StepKind,
)
from vigil.goals.lifecycle import ReadGoal
from vigil.grants.rule import Standing
from vigil.tasks.lifecycle import ReadTask
from vigil.words.rule import Book
from vigil.zones.database import zone_named

from ...model import ModelAnswer, ModelError
from ...notice import Notice
from .. import sway as sways
from .policy import Hours, Moment, Policy


class NotedTools(Mapping[str, Tool]):
    """Tools on offer, which note what is looked up."""

    def __init__(self, tools: Mapping[str, Tool], noted: dict[str, Tool]) -> None:
        self.all = unnoted(tools)
        """For what is shown to a model: not noted."""
        self._noted = noted

    def __getitem__(self, name: str) -> Tool:
        tool = self.all[name]
        self._noted[name] = tool
        return tool

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)


def unnoted(tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Return tools to be looked through: those of them that aren't taken decide nothing."""
    return tools.all if type(tools) is NotedTools else tools


class Inputs:
    """Notes what one turn is decided from, while that happens."""

    def __init__(self, step: StepKind, moment: Moment) -> None:
        self.step = step
        self.began = moment
        self.tools: dict[str, Tool] = {}
        """Those that were looked up."""
        self._described: set[str] = set()
        self.answer: ModelAnswer | None = None
        self.failure: ModelError | None = None
        self.cut: SeenCut | None = None
        self.notices: tuple[Notice, ...] = ()

    def noting(self, moment: Moment) -> Moment:
        """Return the moment with tools that are noted when they are looked up."""
        if not moment.tools:
            return moment
        return msgspec.structs.replace(moment, tools=NotedTools(moment.tools, self.tools))

    def note_found(self, tools: Mapping[str, Tool]) -> None:
        """Note tools that were found by what they say of themselves."""
        self.tools |= tools
        self._described.update(tools)

    def made(self, ended: Moment, policy: Policy, rows: Iterable[Row]) -> Made:
        """Return the record."""
        began, after = _seen(self.began), _seen(ended)
        made = Made(
            step=self.step,
            moment=None if began == after else began,
            after=after,
            route=policy.route,
            tools=tuple(
                tool if name in self._described else msgspec.structs.replace(tool, description="")
                for name, tool in self.tools.items()
            ),
            answer=None if self.answer is None else _answer(self.answer, rows),
            failure=None if self.failure is None else _failure(self.failure),
            cut=self.cut,
            notices=tuple(_notice(one) for one in self.notices),
        )
        if _may_be_long(made) and len(encode(made)) > MADE_BYTES_MAX:
            return Made(step=self.step, is_cut=True)
        return made


def _may_be_long(made: Made) -> bool:
    moments = [moment for moment in (made.moment, made.after) if moment is not None]
    is_long = made.tools or made.failure or (made.answer is not None and made.answer.blocks)
    return bool(
        is_long or any(m.grants or m.tasks or m.goals or m.habits or m.approvals for m in moments)
    )


# ---------------------------------------------------------------- moments


def moment_at(now: datetime, hours: Hours, **more: Any) -> Moment:
    """Return the moment of a decision at `now`, by a person's clock."""
    return Moment(
        now=now,
        quiet_until=hours.quiet_until(now),
        paused_until=hours.paused_until(now),
        digest_at=hours.digest_after(now),
        hours=hours,
        **more,
    )


def _seen(moment: Moment) -> SeenMoment:
    hours = moment.hours
    return SeenMoment(
        now=moment.now,
        hours=None
        if hours == Hours()
        else SeenHours(
            zone=hours.zone.key, quiet=hours.quiet, digest=hours.digest, pause=hours.pause
        ),
        hours_at=None if moment.hours_at == NEVER else moment.hours_at,
        is_paused=moment.is_paused,
        present=moment.present,
        is_history_swayed=sways.recorded(moment),
        unsaid=tuple(sorted(moment.unsaid)),
        grants=tuple(
            [
                SeenGrant(
                    grant=g.grant, revision=g.revision, uses=g.uses, last_used_at=g.last_used_at
                )
                for g in moment.grants
            ]
        ),
        tasks=tuple([SeenTask(task=one.task, revision=one.revision) for one in moment.tasks]),
        goals=tuple([SeenGoal(goal=one.goal, revision=one.revision) for one in moment.goals]),
        habits=moment.habits,
        asked=moment.asked,
        known=None if moment.known is None else _kept_book(moment.known),
        approvals=moment.approvals,
    )


def _kept_book(book: Book) -> SeenBook:
    names = [(name, to) for name, reached in book.names.items() for to in reached]
    return SeenBook(addresses=tuple(sorted(book.addresses)), names=tuple(sorted(names)))


def _book_of(seen: SeenBook) -> Book:
    named: dict[str, frozenset[str]] = {}
    for name, to in seen.names:
        named[name] = named.get(name, frozenset()) | {to}
    return Book(addresses=frozenset(seen.addresses), names=named)


def moment_of(seen: SeenMoment, tools: Mapping[str, Tool]) -> Moment:
    """Return the moment that was recorded."""
    hours = Hours()
    if (kept := seen.hours) is not None:
        hours = Hours(
            zone=zone_named(kept.zone), quiet=kept.quiet, digest=kept.digest, pause=kept.pause
        )
    return moment_at(
        seen.now,
        hours,
        hours_at=seen.hours_at or NEVER,
        is_paused=seen.is_paused,
        tools=tools,
        grants=tuple(
            Standing(grant=g.grant, revision=g.revision, uses=g.uses, last_used_at=g.last_used_at)
            for g in seen.grants
        ),
        tasks=tuple(ReadTask(task=one.task, revision=one.revision) for one in seen.tasks),
        goals=tuple(ReadGoal(goal=one.goal, revision=one.revision) for one in seen.goals),
        habits=seen.habits,
        asked=seen.asked,
        known=None if seen.known is None else _book_of(seen.known),
        approvals=seen.approvals,
        present=seen.present,
        is_history_tainted=seen.is_history_swayed,
        unsaid=frozenset(seen.unsaid),
    )


# ---------------------------------------------------------------- answers


def _answer(answer: ModelAnswer, rows: Iterable[Row]) -> SeenAnswer:
    row = next((i for i, row in enumerate(rows) if row.blocks == answer.blocks), None)
    return SeenAnswer(
        stop_reason=answer.stop_reason,
        row=row,
        blocks=() if row is not None else answer.blocks,
        is_fallback=answer.is_fallback,
    )


def answer_of(seen: SeenAnswer, rows: tuple[Row, ...], usage: Usage) -> ModelAnswer:
    """Return the answer that was recorded."""
    return ModelAnswer(
        blocks=seen.blocks if seen.row is None else rows[seen.row].blocks,
        stop_reason=seen.stop_reason,  # type: ignore[arg-type]  # as it was written
        usage=usage,
        is_fallback=seen.is_fallback,
    )


def _notice(notice: Notice) -> SeenNotice:
    return SeenNotice(id=notice.id, text=notice.text, what=notice.what, offer=notice.offer)


def _failure(error: ModelError) -> SeenFailure:
    return SeenFailure(
        reason=error.reason,
        is_retryable=error.is_retryable,
        retry_after_s=error.retry_after_s,
        budget_at=error.budget_at,
        kind=error.kind,
    )


def error_of(seen: SeenFailure) -> ModelError:
    """Return the failure that was recorded."""
    return ModelError(
        seen.reason,
        is_retryable=seen.is_retryable,
        retry_after_s=seen.retry_after_s,
        budget_at=seen.budget_at,
        kind=seen.kind,
    )
