"""Rewriting a stream of which the broker leaves dead records in its files.

The block that is written to is filled up, every live record is stored once more behind that, and
so the old blocks are left without one. The broker removes such a block's file, and with it what
was dead in there. Of the states of an entity on the board only the newest is stored again.

Killed anywhere, it may begin anew: a record that is there twice is taken for two of its states.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from .. import crash
from ..bus.bus import Bus, Message
from ..bus.message import lasting
from ..errors import WrongLastSequence
from ..subjects import BOARD_ALL
from .deletion import erase_message, patience

FILL_BYTES: Final = 900 * 1024
FILL_COUNT: Final = 10
"""Together more than a block of any stream: 8 MiB is the broker's largest (measured)."""
FILL: Final = "erase-fill"
READ_S: Final = 600.0
"""How long reading a whole stream may take."""
SCRUBBED: Final = ("TIMERS", "BOARD", "KV_TOKENS", "KV_CONFIG", "KV_BUDGETS")
"""Streams with records that name people and are replaced or purged. Other buckets hold hashes, or
nothing of a person."""
LIVE: Final = {
    "TIMERS": ("timer.>", "due.>"),
    "BOARD": (BOARD_ALL,),
    "KV_TOKENS": ("$KV.TOKENS.>",),
    "KV_CONFIG": ("$KV.CONFIG.>",),
    "KV_BUDGETS": ("$KV.BUDGETS.>",),
}
"""What is in a stream that is scrubbed."""
FILLS: Final = {
    "TIMERS": f"timer.{FILL}",
    "BOARD": f"board.{FILL}.{FILL}.{FILL}",
    "KV_TOKENS": f"$KV.TOKENS.{FILL}",
    "KV_CONFIG": f"$KV.CONFIG.{FILL}",
    "KV_BUDGETS": f"$KV.BUDGETS.{FILL}",
}
"""Under what subject a stream's block is filled."""
Report = Callable[[str, int], None]
"""Is told the step, and how many records it is through with."""


async def scrub(bus: Bus, stream: str, report: Report) -> None:
    """Rewrite a stream's live records, so that no block with dead ones is left."""
    await _empty(bus, stream)
    await _fill(bus, stream)
    crash.point("erase.filled")
    newest: dict[str, Message] = {}
    for message in await bus.read(stream, LIVE[stream], timeout=READ_S):
        if older := newest.get(message.subject):
            await erase_message(bus, stream, older.seq, is_secret=False)
        newest[message.subject] = message
    for count, message in enumerate(newest.values(), 1):
        if FILL not in message.subject:
            await _again(bus, stream, message)
            report(f"scrub {stream}", count)
    await _empty(bus, stream)
    crash.point("erase.scrubbed")


async def _fill(bus: Bus, stream: str) -> None:
    """Roll the block that is written to: all that follows is in another."""
    # To the watchers of a bucket it is a key that was deleted; the scheduler never fires it.
    headers = {"KV-Operation": "DEL"}
    for n in range(FILL_COUNT):
        subject = f"{FILLS[stream]}.{n}"
        await patience().run(partial(bus.publish, subject, b"\0" * FILL_BYTES, headers))


async def _empty(bus: Bus, stream: str) -> None:
    for message in await bus.read(stream, [f"{FILLS[stream]}.>"]):
        await erase_message(bus, stream, message.seq, is_secret=False)


async def _again(bus: Bus, stream: str, message: Message) -> None:
    """Store a record once more, unless something newer came in its place."""
    if not message.data and "KV-Operation" in message.headers:
        await erase_message(bus, stream, message.seq, is_secret=False)
        return
    headers = lasting(message.headers)
    try:
        await patience().run(
            lambda: bus.publish(message.subject, message.data, headers, expect=message.seq)
        )
    except WrongLastSequence:
        return
    crash.point("erase.again")
    await erase_message(bus, stream, message.seq, is_secret=False)
