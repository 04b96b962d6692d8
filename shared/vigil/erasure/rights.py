"""What may be asked of the broker to delete records of conversations, one by one. Pure."""

from __future__ import annotations

from typing import Final

from ..attachments.subjects import ATTACHED
from ..layout import LOG, all_names

STREAMS: Final = (LOG, "SYSTEM", "TIMERS", "BOARD", "SIGNALS", "DEAD", *ATTACHED, "KV_IDEMPOTENCY")
DELETES: Final = tuple(
    f"$JS.API.STREAM.MSG.DELETE.{one}" for name in STREAMS for one in all_names(name)
)
