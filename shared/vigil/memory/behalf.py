"""On whose behalf the tools of MCP act: no argument of theirs names a user or an agent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from .operation import Operation
from .wire import Whose


class Memories(Protocol):
    """Whatever asks for the memory: the gateway for one caller, or a client of it."""

    async def ask(self, operation: Operation, whose: Whose, fields: Mapping[str, Any]) -> Any:
        """Return what the outside is answered (`Operation.answer`)."""
        ...


class Acting(msgspec.Struct, frozen=True):
    """On whose behalf a call is made."""

    memories: Memories
    whose: Whose
