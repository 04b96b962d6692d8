"""Prices (LOOPS L-22): exact, rounded up, by the day, never less than the provider asks."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.contracts import Usage
from vigil.errors import ConfigError, InvalidInput
from vigil.settings.config import load
from vigil.settings.models.prices import PriceBand, Prices, band_of, check, cost_of, worst_cost_of

DAY = date(2026, 11, 23)
_price = st.decimals(min_value=0, max_value=1000, places=4).map(float)
_tokens = st.integers(min_value=0, max_value=10**9)
_bands = st.builds(
    PriceBand,
    since=st.just(DAY),
    input=_price,
    output=_price,
    cache_read=st.none() | _price,
    cache_write=st.none() | _price,
)
_usage = st.builds(
    Usage,
    model=st.just("m"),
    input_tokens=_tokens,
    output_tokens=_tokens,
    cache_read_tokens=_tokens,
    cache_write_tokens=_tokens,
)


@given(_bands, _usage)
def test_a_cost_is_exact_and_rounded_up(band: PriceBand, usage: Usage) -> None:
    def exact(price: float | None) -> Fraction:
        return Fraction(str(band.input if price is None else price))

    due = (
        usage.input_tokens * exact(band.input)
        + usage.output_tokens * exact(band.output)
        + usage.cache_read_tokens * exact(band.cache_read)
        + usage.cache_write_tokens * exact(band.cache_write)
    )
    cost = cost_of((band,), usage, DAY)
    assert cost is not None
    assert 0 <= cost - due < 1


@given(_bands, _usage)
def test_the_worst_case_is_never_less(band: PriceBand, usage: Usage) -> None:
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    worst = worst_cost_of((band,), sent, usage.output_tokens, DAY)
    cost = cost_of((band,), usage, DAY)
    assert worst is not None
    assert cost is not None
    assert worst >= cost


@given(st.sets(st.integers(0, 1000), min_size=1, max_size=8), st.integers(-10, 1010))
def test_the_last_band_that_has_begun_holds(days: set[int], day: int) -> None:
    prices = tuple(_band(since=DAY + timedelta(days=n)) for n in sorted(days))
    check("prices", prices)
    band = band_of(prices, DAY + timedelta(days=day))
    begun = [n for n in days if n <= day]
    assert (band is None) == (not begun)
    assert band is None or band.since == DAY + timedelta(days=max(begun))


@pytest.mark.parametrize("price", [-1, -0.001, float("nan"), float("inf"), 1e7])
@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write"])
def test_an_impossible_price_is_named(name: str, price: float) -> None:
    with pytest.raises(InvalidInput, match=rf"^prices\[1\]\.{name}: must be 0 to 1000000 USD"):
        check("prices", (_band(), _band(since=DAY + timedelta(days=1), **{name: price})))


@pytest.mark.parametrize("days", [0, 1])
def test_bands_out_of_order_are_named(days: int) -> None:
    prices = (_band(), _band(since=DAY - timedelta(days=days)))
    with pytest.raises(InvalidInput, match=r"^prices\[1\]\.since: must be after"):
        check("prices", prices)


def test_they_are_read_from_toml_values() -> None:
    raw = [{"since": DAY, "input": 3, "output": 15.0}]
    assert msgspec.convert(raw, Prices) == (_band(),)
    assert cost_of((), Usage(model="m", input_tokens=1), DAY) is None


def _band(**changed: Any) -> PriceBand:
    return PriceBand(**({"since": DAY, "input": 3.0, "output": 15.0} | changed))


def test_a_file_with_prices_and_caps_is_read_and_its_mistakes_are_named(tmp_path: Path) -> None:
    file = tmp_path / "vigil.toml"
    row = "[models.m]\nprices = [{since = 2026-01-01, input = 3, output = %s}]\n"
    file.write_text("[budget]\ndaily_usd = 5\n" + row % "15")
    config = load({}, home=tmp_path).config
    assert config.budget.daily_usd == 5
    assert cost_of(config.prices_of("m"), Usage(model="m", output_tokens=2), DAY) == 30
    assert config.prices_of("another") == ()
    file.write_text("[budget]\ndaily_usd = nan\n" + row % "15")
    with pytest.raises(ConfigError, match=r">= 0\.0 - at `\$\.budget\.daily_usd`"):
        load({}, home=tmp_path)
    file.write_text("[budget]\ndaily_usd = -1\n" + row % "nan")
    with pytest.raises(ConfigError) as caught:
        load({}, home=tmp_path)
    assert "models.m.prices[0].output: must be 0 to 1000000 USD" in str(caught.value)
    assert "budget.daily_usd" in str(caught.value)
