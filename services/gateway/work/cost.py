"""/api/cost: what calls of models came to, divided by day, agent, person and more (LOOPS L-21).

One sees one's own and one's teams', an admin everybody's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Final, Literal, get_args

import msgspec
from fastapi import Query, Response
from msgspec.structs import replace

from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.contracts.costs import COSTS, Account, DayOfCosts
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.errors import InvalidInput
from vigil.marks import conversation_label
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey, token_of

from ..callers import Caller, Shared
from ..http.json import Json
from ..http.wire import Answer
from ..insight.budget import day_of
from ..shelf.first_words import first_said, words_of
from ..shelf.titles import title_of
from ..state.edge import Edge

DAYS_MAX: Final = 400
TITLED_MAX: Final = 50
"""Conversations whose titles are looked for."""
NAMED_MAX: Final = 500
"""Causes that a name is looked up for."""
AT_ONCE: Final = 50
NAME_LENGTH_MAX: Final = 80
OWN_THREADS: Final = {f"_{kind}": known.meaning for kind, known in SESSION_KINDS.items()}
_ID: Final = re.compile(r"[0-9a-f]{32}")
By = Literal["day", "agent", "person", "cause", "tier", "model"]
_SUMS: Final = (
    "calls",
    "calls_unpriced",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "micro_usd",
)


class CostLine(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """Sums of settled calls; what they are not divided by is empty."""

    day: str
    agent: str
    person: str
    cause: str
    """The goal, the row of the timetable, or the thread of the session that it was for; `other`: of
    those beyond a hundred a day."""
    cause_name: str = ""
    """What that goal, row or conversation of yours is called, if it is still there; of a thread of
    the agent's own, what it is for."""
    tier: str
    model: str
    calls: int
    calls_unpriced: int
    """Those of them without a price; they are not in `micro_usd`."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    micro_usd: int
    cached_share: float
    """Of the tokens that were sent, those read from the provider's cache: 0 to 1."""


class Costs(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What calls came to, and what of three days is set aside and not settled."""

    lines: tuple[CostLine, ...]
    reserved_tokens: int
    reserved_micro_usd: int


async def get_cost(
    edge: Shared,
    caller: Caller,
    days: Annotated[int, Query(ge=1, le=DAYS_MAX, description="Days up to today")] = 7,
    by: Annotated[list[By] | None, Query(description="One line for each of these")] = None,
) -> Response:
    """Tell what calls of models came to: one's own and one's teams', for an admin everybody's."""
    today = day_of(edge, caller.user).date
    first = (today - timedelta(days=days - 1)).isoformat()
    found = [
        (day, _seen(msgspec.json.decode(one.data, type=DayOfCosts), caller))
        for one in await edge.bus.read("KV_BUDGETS", _records(caller))
        if one.data and (day := one.subject.split(".")[2]) >= first
    ]
    whose = "*" if caller.is_admin else token_of(caller.user)
    accounts = [
        msgspec.json.decode(one.data, type=Account)
        for one in await edge.bus.read("KV_BUDGETS", [f"$KV.BUDGETS.*.owner.{whose}"])
        if one.data and one.subject.split(".")[2] >= first
    ]
    lines = lines_of(found, by or ["day"])
    names = await _names(edge, caller, {line.cause for line in lines})
    # An admin's lines may be of anybody's threads of that name.
    is_own = not caller.is_admin
    mine = {line.cause for line in lines if is_own or line.person == caller.user}
    titles = await _titles(edge, caller.user, mine - set(names))
    return Json(
        Costs(
            lines=tuple(
                replace(line, cause_name=names.get(line.cause) or titles.get(line.cause, ""))
                if is_own or line.person == caller.user
                else replace(line, cause_name=names.get(line.cause, ""))
                for line in lines
            ),
            reserved_tokens=sum(one.reserved for one in accounts),
            reserved_micro_usd=sum(one.reserved_micro_usd for one in accounts),
        )
    )


def _records(caller: Principal) -> list[str]:
    """Return where the records are that have rows for the caller."""
    owners = sorted({scope.owner for scope in caller.reach})
    tokens = ["*" if owner == "*" else token_of(owner) for owner in owners]
    return [f"$KV.BUDGETS.*.{COSTS}.{token}" for token in tokens]


def _seen(day: DayOfCosts, caller: Principal) -> DayOfCosts:
    """Leave out what other teams' agents spent."""
    if day.user == caller.user:
        return day
    return replace(
        day, rows=tuple(row for row in day.rows if caller.may_reach(day.user, row.agent))
    )


async def _names(edge: Edge, caller: Principal, causes: Iterable[str]) -> dict[str, str]:
    """Return what goals and rows of the timetable are called, by their ids, and what the threads
    are for that agents have of their own."""
    ids = sorted(cause for cause in causes if _ID.fullmatch(cause))[:NAMED_MAX]
    found: list[str] = []
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        found += await asyncio.gather(*(_name(edge, caller, id_) for id_ in some))
    return OWN_THREADS | dict(zip(ids, found, strict=True))


async def _titles(edge: Edge, user: str, causes: Iterable[str]) -> dict[str, str]:
    """Return what a person's conversations are called, by their threads."""
    threads = sorted(one for one in causes if one and not _ID.fullmatch(one))[:TITLED_MAX]
    labels = await conversation_label.all_of(edge.bus, user) if threads else {}

    async def title(thread: str) -> str:
        try:
            session = SessionKey(user, "vigil", thread)
        except InvalidInput:
            return ""
        label = labels.get(str(session))
        if label is not None and label.title:
            return label.title
        return title_of(words_of(await first_said(edge.bus, session)))

    return dict(zip(threads, await asyncio.gather(*map(title, threads)), strict=True))


async def _name(edge: Edge, caller: Principal, id_: str) -> str:
    row = await KeptBoard(edge.bus, ROWS).find(caller.nearest, id_)
    if row is not None:
        return row.entity.name
    goal = await KeptBoard(edge.bus, GOALS).find(caller.nearest, id_)
    return "" if goal is None else goal.entity.description[:NAME_LENGTH_MAX]


def lines_of(found: Iterable[tuple[str, DayOfCosts]], by: Iterable[By]) -> tuple[CostLine, ...]:
    """Return the sums, in the order of what they are divided by.

    >>> from vigil.contracts.costs import CostRow
    >>> row = CostRow(agent="a", cause="t", tier="main", model="m", calls=2, micro_usd=7)
    >>> found = [("2026-11-22", DayOfCosts(user="ann", rows=(row, row)))]
    >>> [(line.person, line.day, line.micro_usd) for line in lines_of(found, ["person"])]
    [('ann', '', 14)]
    """
    wanted = set(by)
    sums: dict[tuple[str, ...], list[int]] = {}
    for day, costs in found:
        for row in costs.rows:
            whole = (day, row.agent, costs.user, row.cause, row.tier, row.model)
            name = tuple(
                part if one in wanted else "" for one, part in zip(get_args(By), whole, strict=True)
            )
            total = sums.setdefault(name, [0] * len(_SUMS))
            sums[name] = [have + getattr(row, one) for have, one in zip(total, _SUMS, strict=True)]
    return tuple(_line(name, sums[name]) for name in sorted(sums))


def _line(name: tuple[str, ...], sums: list[int]) -> CostLine:
    named = dict(zip(get_args(By), name, strict=True))
    counts = dict(zip(_SUMS, sums, strict=True))
    sent = counts["input_tokens"] + counts["cache_read_tokens"] + counts["cache_write_tokens"]
    share = counts["cache_read_tokens"] / sent if sent else 0.0
    return CostLine(**named, **counts, cached_share=round(share, 4))  # type: ignore[arg-type]
