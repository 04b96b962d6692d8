"""What a message replies to, as the model sees it in front of it (FLOW F-2). Pure.

Words of the agent's own that nothing from outside had a part in are quoted. Of a letter there is
only that it was meant: its text stands with the letters that are open, never in the history.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

from vigil.contracts import TextBlock
from vigil.contracts.events import RepliedTo

MARK: Final = "[This replies to what you said at "


def block_of(reply: RepliedTo) -> TextBlock:
    """Return what stands in front of a message that replies to something.

    >>> from datetime import datetime
    >>> at = datetime(2026, 11, 28, 7, 0, tzinfo=UTC)
    >>> block_of(RepliedTo(id="1f", turn_seq=9, at=at, quote="Good morning.")).text
    '[This replies to what you said at 2026-11-28 07:00 UTC: "Good morning."]'
    """
    what = f': "{reply.quote}"' if reply.quote else ", a letter, which is open with this message"
    at = f"{reply.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return TextBlock(text=f"{MARK}{at}{what}]")
