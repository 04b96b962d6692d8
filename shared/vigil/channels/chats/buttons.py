"""Buttons by which a request is decided, and what a press of one says. Pure."""

from __future__ import annotations

import re
from typing import Final

LABELS: Final = (("Accept", "accept"), ("Reject", "reject"))
_DATA: Final = re.compile(r"(accept|reject):([0-9a-f]{32})")
NOTED: Final = "Noted."


def buttons(asks: str) -> list[tuple[str, str]]:
    """Return the buttons of a request, each as label and data.

    >>> buttons("0a"), buttons("")
    ([('Accept', 'accept:0a'), ('Reject', 'reject:0a')], [])
    """
    return [(label, f"{verdict}:{asks}") for label, verdict in LABELS] if asks else []


def verdict_in(data: str) -> str:
    """Return what its person would write instead of a press; empty: it's no button of ours.

    >>> verdict_in("accept:" + "0a" * 16), verdict_in("accept:all")
    ('accept 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a', '')
    """
    found = _DATA.fullmatch(data)
    return "" if found is None else f"{found[1]} {found[2]}"
