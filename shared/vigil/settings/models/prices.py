"""What a model costs: dated bands of prices, and the cost of tokens by them. Pure.

A provider changes a price from a day on, so a model has a list of bands; that of a call is the
last that has begun on the call's UTC day. Money is an integer of micro-USD, rounded up for each
call: a sum of many is exact, and never less than the provider's. A dollar per million tokens is a
micro-USD per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import ROUND_CEILING, Decimal
from itertools import pairwise
from typing import Final

import msgspec

from ...contracts import Usage
from ...errors import InvalidInput

USD_MAX: Final = 1_000_000.0
"""Largest price of a million tokens; more is a mistake in the unit."""
_FINE: Final = 1_000_000
"""Parts of a micro-USD that a token's price is counted in."""


class PriceBand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in USD per million tokens, from a UTC day until the next band begins."""

    since: date
    """The first day."""
    input: float
    """Of tokens read that no cache held."""
    output: float
    """Of tokens written."""
    cache_read: float | None = None
    """Of tokens read from the provider's cache; none: as `input`."""
    cache_write: float | None = None
    """Of tokens stored in it; none: as `input`."""


Prices = tuple[PriceBand, ...]
"""The bands of a model, the earliest first."""


def check(path: str, prices: Prices) -> None:
    """Check that prices can be reckoned with. `path` names the setting.

    Raises:
        InvalidInput: a price that is negative, no number or absurdly high; bands out of order.

    >>> from datetime import date
    >>> check("prices", (PriceBand(since=date(2026, 1, 1), input=3, output=-15),))
    Traceback (most recent call last):
    vigil.errors.InvalidInput: prices[0].output: must be 0 to 1000000 USD per million tokens
    """
    for number, band in enumerate(prices):
        for name in ("input", "output", "cache_read", "cache_write"):
            price = getattr(band, name)
            # A comparison with NaN is false.
            if price is not None and not 0 <= price <= USD_MAX:
                reason = f"must be 0 to {USD_MAX:.0f} USD per million tokens"
                raise InvalidInput(f"{path}[{number}].{name}", reason)
    for number, (one, following) in enumerate(pairwise(prices), start=1):
        if following.since <= one.since:
            reason = f"must be after that of the band before it ({one.since})"
            raise InvalidInput(f"{path}[{number}].since", reason)


def band_of(prices: Sequence[PriceBand], day: date) -> PriceBand | None:
    """Return the band that holds on a UTC day; None: there is no price."""
    begun = [band for band in prices if band.since <= day]
    return begun[-1] if begun else None


def cost_of(prices: Sequence[PriceBand], usage: Usage, day: date) -> int | None:
    """Return what a call of a day costs, in micro-USD; None: there is no price.

    >>> from datetime import date
    >>> sonnet = (PriceBand(since=date(2026, 1, 1), input=3, output=15, cache_read=0.3),)
    >>> usage = Usage(model="m", input_tokens=1000, output_tokens=100, cache_read_tokens=7)
    >>> cost_of(sonnet, usage, date(2026, 11, 23))
    4503
    >>> cost_of(sonnet, usage, date(2025, 12, 31)) is None
    True
    """
    band = band_of(prices, day)
    if band is None:
        return None
    read, write = _of_cache(band)
    return _rounded(
        usage.input_tokens * _fine(band.input)
        + usage.output_tokens * _fine(band.output)
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    )


def worst_cost_of(
    prices: Sequence[PriceBand], input_tokens: int, output_tokens: int, day: date
) -> int | None:
    """Return the most that such a call can cost, in micro-USD; None: there is no price.

    >>> from datetime import date
    >>> worst_cost_of((PriceBand(since=date(2026, 1, 1), input=1, output=5),), 10, 10, date.max)
    60
    """
    band = band_of(prices, day)
    if band is None:
        return None
    dearest = max(_fine(band.input), *_of_cache(band))
    return _rounded(input_tokens * dearest + output_tokens * _fine(band.output))


def _of_cache(band: PriceBand) -> tuple[int, int]:
    read = band.input if band.cache_read is None else band.cache_read
    write = band.input if band.cache_write is None else band.cache_write
    return _fine(read), _fine(write)


def _fine(price: float) -> int:
    return int((Decimal(str(price)) * _FINE).to_integral_value(ROUND_CEILING))


def _rounded(fine: int) -> int:
    return -(-fine // _FINE)
