"""What a person's calls of a day came to, by agent, cause, tier and model (LOOPS L-21). Pure.

A record per person and day, so that it is bounded by what one person does: `ROWS_MAX` rows, about
20 kB. Beyond, a call of a cause that has no row yet is counted under the cause `OTHER`, which has
a row for each agent, tier and model; so a thousand causes a day make no huge record, and no sum
is wrong.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from vigil.contracts import Usage
from vigil.contracts.costs import OTHER, CostRow, DayOfCosts

from .accounts import Amount, PaidCall

ROWS_MAX: Final = 100
TOKENS_MAX: Final = 10**9
"""Tokens of one kind that no call can take: who tells of more, or of less than none, is wrong."""


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
