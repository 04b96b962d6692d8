"""Percentiles, and how a measurement is printed: one JSON object a line."""

from __future__ import annotations

import json
import math
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
    rounded = round(value, 3 if abs(value) < 100 else 1)
    print(json.dumps({"name": name, "value": rounded, "unit": unit, **context}), flush=True)
