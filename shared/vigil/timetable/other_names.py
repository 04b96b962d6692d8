"""Names that fields of rows are called by, too: those of SPEC P-5. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from ..errors import InvalidInput

T = TypeVar("T")
OTHER_NAMES: Final = {
    "timezone": "zone",
    "interval_secs": "interval_s",
    "delivery_target": "target",
    "run_once": "runs_once",
    "stateful": "is_stateful",
}
"""By name the field that is meant; that is the one that is documented."""


def renamed(given: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """Return what is given, each under the name that is documented.

    Raises:
        InvalidInput: something is given by two names.

    >>> renamed({"timezone": "Asia/Tokyo", "cron": "0 9 * * *"}, OTHER_NAMES)
    {'zone': 'Asia/Tokyo', 'cron': '0 9 * * *'}
    """
    for other, name in names.items():
        if other in given and name in given:
            raise InvalidInput(other, f"is another name of {name}: give one of them")
    return {names.get(name, name): value for name, value in given.items()}
