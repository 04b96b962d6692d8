"""Percentiles, and how a measurement is printed: one JSON object a line."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values don't exceed.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 50)
    2.0
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def report(name: str, value: float, unit: str, **context: object) -> None:
    """Print one measurement."""
    line = {"name": name, "value": rounded(value), "unit": unit, **context}
    print(json.dumps(line), flush=True)


def report_rounds(name: str, values: Sequence[float], unit: str, **context: object) -> None:
    """Print the median of what the rounds found, with the least and the most of them."""
    spread = {"least": rounded(min(values)), "most": rounded(max(values)), "rounds": len(values)}
    report(name, statistics.median(values), unit, **spread, **context)


def rounded(value: float) -> float:
    """Return `value` with as many digits as tell something."""
    return round(value, 3 if abs(value) < 100 else 1)
