"""A paid call: who spends, and what a person's calls of a day came to (LOOPS L-21). Pure.

The sums are by agent, cause, tier and model: a record per person and day, so that it is bounded by
what one person does: `ROWS_MAX` rows, about 20 kB. Beyond, a call of a cause that has no row yet is
counted under the cause `OTHER`, which has a row for each agent, tier and model; so a thousand
causes a day make no huge record, and no sum is wrong.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from vigil.contracts import Start, State, Usage
from vigil.contracts.costs import OTHER, CostRow, DayOfCosts
from vigil.subjects import SessionKey

ROWS_MAX: Final = 100
TOKENS_MAX: Final = 10**9
"""Tokens of one kind that no call can take: who tells of more, or of less than none, is wrong."""


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, and what they cost in micro-USD; None: there is no price."""

    tokens: int
    micro_usd: int | None = None


NOTHING: Final = Amount(tokens=0, micro_usd=0)


class PaidCall(msgspec.Struct, frozen=True, kw_only=True):
    """Who spends, on what and with which model."""

    user: str
    agent: str
    cause: str
    """The thread of the session: a conversation, a worker, a job, a task's run."""
    model: str
    tier: str = "main"
    starter: str = ""
    """The thread of the session that started it; empty: none did."""
    root: str = ""
    """The thread of the first of those; empty: it's this one."""
    row: str = ""
    """The row of the timetable that it all came from; empty: none."""
    row_tokens: int = 0
    """What that may take a day; 0: as configured."""
    goal: str = ""
    """The goal that it all serves; empty: none."""
    is_attended: bool = True
    """Whether a person's own words in a conversation began it, or ordered it."""
    zone: str = "UTC"
    """Whose days the person's accounts are of: theirs."""

    @classmethod
    def of(
        cls, key: SessionKey, state: State, model: str, tier: str = "main", *, zone: str = "UTC"
    ) -> PaidCall:
        """Return the call of a session in that state. A look at one goal is for that."""
        start, due = state.start or Start(prompt=""), state.mind.goals
        loop, first = state.loop, replace(key, thread=start.root or key.thread)
        is_asked = loop is not None and (loop.is_direct or loop.is_ordered)
        return cls(
            user=key.user,
            agent=key.agent,
            cause=key.thread,
            model=model,
            tier=tier,
            starter=SessionKey.parse(start.parent).thread if start.parent else "",
            root=start.root,
            row=start.row,
            row_tokens=start.row_tokens,
            goal=due[0] if len(due) == 1 else start.goal,
            is_attended=is_asked and not first.is_system,
            zone=zone,
        )


def tokens(count: float) -> str:
    """Return a number of them in words."""
    return f"{count:.0f} tokens"


def usd(micro_usd: float) -> str:
    """Return an amount in words, rounded up to a hundredth of a cent.

    >>> usd(1_234_501), usd(5_000_000)
    ('1.2346 USD', '5.0000 USD')
    """
    return f"{-(-micro_usd // 100) / 10_000:.4f} USD"


def entered(day: DayOfCosts, call: PaidCall, usage: Usage, amount: Amount) -> DayOfCosts:
    """Count a settled call.

    >>> day = DayOfCosts(user="ann")
    >>> call = PaidCall(user="ann", agent="vigil", cause="t1", model="m")
    >>> usage = Usage(model="m", input_tokens=3, output_tokens=4)
    >>> twice = entered(entered(day, call, usage, Amount(tokens=7)), call, usage, Amount(tokens=7))
    >>> [(row.cause, row.calls, row.output_tokens) for row in twice.rows]
    [('t1', 2, 8)]
    """
    rows = {_name(row): row for row in day.rows}
    # What others start is counted as theirs: a hundred workers are no hundred rows.
    cause = call.goal or call.row or call.root or call.starter or call.cause
    fresh = CostRow(agent=call.agent, cause=cause, tier=call.tier, model=call.model)
    if _name(fresh) not in rows and len(rows) >= ROWS_MAX:
        fresh = replace(fresh, cause=OTHER)
    row = rows.get(_name(fresh), fresh)
    rows[_name(fresh)] = replace(
        row,
        calls=row.calls + 1,
        input_tokens=row.input_tokens + usage.input_tokens,
        output_tokens=row.output_tokens + usage.output_tokens,
        cache_read_tokens=row.cache_read_tokens + usage.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens + usage.cache_write_tokens,
        micro_usd=row.micro_usd + (amount.micro_usd or 0),
        calls_unpriced=row.calls_unpriced + (amount.micro_usd is None),
    )
    return replace(day, rows=tuple(rows.values()))


def _name(row: CostRow) -> tuple[str, str, str, str]:
    return row.agent, row.cause, row.tier, row.model


def is_plausible(usage: Usage) -> bool:
    """Whether a provider's count can be one: else what was reserved stays counted.

    >>> is_plausible(Usage(model="m", input_tokens=-1, output_tokens=9))
    False
    """
    return all(0 <= tokens <= TOKENS_MAX for tokens in kinds_of(usage)) and usage.tokens > 0


KINDS: Final = ("input", "output", "cache_read", "cache_write")


def kinds_of(usage: Usage) -> tuple[int, int, int, int]:
    """Return the tokens of a call, as `KINDS` names them: those of a cache were read and stored."""
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )
