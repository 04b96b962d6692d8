"""How a message that asks for leave names its request. Pure."""

from __future__ import annotations

import re
from typing import Final

from ..contracts import SHORT_NAME

OR: Final = ", or: reject "
_ASKS: Final = re.compile(rf"\baccept ({SHORT_NAME}){OR}\1\b")


def asked_in(text: str) -> str:
    """Return the short name of the request that a message tells; empty: none, or several.

    >>> asked_in("To decide, say: accept a7k2, or: reject a7k2")
    'a7k2'
    >>> asked_in("accept a7k2, or: reject a7k3")
    ''
    """
    if OR not in text:
        return ""
    found = set(_ASKS.findall(text))
    return found.pop() if len(found) == 1 else ""
