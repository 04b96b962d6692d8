"""W3C trace context, carried in the header ``traceparent`` of every record on the bus.

One trace runs from the request that the gateway accepted to the message that was said. No
span is exported here; the ids are what lets one be joined to another later.

Source: https://www.w3.org/TR/trace-context/ (level 1, section 3.2).
"""

from __future__ import annotations

import os
import re
from typing import Final

HEADER: Final = "traceparent"
_FORM: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def new() -> str:
    """Start a trace."""
    ids = os.urandom(24).hex()
    return f"00-{ids[:32]}-{ids[32:]}-01"


def child(parent: str | None) -> str:
    """Return a new span of the parent's trace, or a new trace if there is no valid parent."""
    if parent is None or not _FORM.fullmatch(parent):
        return new()
    return f"{parent[:36]}{os.urandom(8).hex()}{parent[52:]}"
