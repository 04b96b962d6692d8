"""How fast a server may talk, and how much it may ask without listening.

Every message is read, parsed and looked at in the process that runs everybody's tools; what comes
faster waits in its pipe, or in its socket. A request of a server waits in memory until its answer
is taken, so a server that takes none may ask only so much.
"""

from __future__ import annotations

import asyncio
from typing import Final

import mcp_types as types
import msgspec
import structlog
from mcp.shared.message import SessionMessage

from .schemas import visible

log = structlog.get_logger("vigil.executor.mcp")

MESSAGES_PER_S_MAX: Final = 1000
BYTES_PER_S_MAX: Final = 16 * 1024 * 1024
BURST_S: Final = 1.0
"""What may come at once: as much as otherwise in so many seconds."""
UNHEARD_MAX: Final = 500
UNHEARD_BYTES_MAX: Final = 32 * 1024 * 1024
LINES_MAX: Final = 100
"""Of what a server says beside answers: so many lines are logged, of each start or connection."""
LINE_LENGTH_MAX: Final = 500
DEAF: Final = "it asks without end, and does not listen"


class Pace:
    """The pace of one connection."""

    def __init__(self) -> None:
        self._through_s = 0.0
        """Up to when, by the loop's clock, what came is within the pace."""

    async def take(self, messages: int, size: int) -> None:
        """Note what has come, and wait if it came too fast."""
        now = asyncio.get_running_loop().time()
        cost_s = max(messages / MESSAGES_PER_S_MAX, size / BYTES_PER_S_MAX)
        self._through_s = max(self._through_s, now) + cost_s
        if (early_s := self._through_s - now - BURST_S) > 0:
            await asyncio.sleep(early_s)


class Unheard:
    """What a server has asked since it last took something of ours."""

    def __init__(self) -> None:
        self.heard()

    def heard(self) -> None:
        """It took something."""
        self._count = self._bytes = 0

    def may_come(self, message: SessionMessage | Exception) -> bool:
        """Note a message; return whether there is room for it."""
        if isinstance(message, SessionMessage) and isinstance(
            message.message, types.JSONRPCRequest
        ):
            self._count += 1
            self._bytes += len(message.message.model_dump_json())
        return self._count <= UNHEARD_MAX and self._bytes <= UNHEARD_BYTES_MAX


class ServerLog:
    """What a server says for whoever runs it, in our log, and not more than a person reads.

    A program says it beside its messages; by the protocol any server may say it in one of them.
    """

    def __init__(self, server: str, action: str) -> None:
        self._server = server
        self._action = action
        self._count = 0

    def __call__(self, line: str, **about: str) -> None:
        self._count += 1
        if not line or self._count > LINES_MAX:
            return
        log.info(
            "said",
            action=self._action,
            server=self._server,
            line=visible(line)[:LINE_LENGTH_MAX],
            is_last=self._count == LINES_MAX,
            **about,
        )

    async def take(self, params: types.LoggingMessageNotificationParams) -> None:
        """Log a message of the protocol's; data that is no text as JSON."""
        data = params.data
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        self(" ".join(text.split()), level=params.level)
