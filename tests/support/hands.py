"""The executor's own tools without a broker: calls as the executor makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import msgspec

from services.executor.builtin import Builtin
from services.executor.sandbox.box import Kind
from services.executor.sandbox.choice import Choice
from services.executor.tools.declaration import declared
from services.executor.tools.source import Call, ToolOutput
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.settings.config import Config, Settings
from vigil.settings.sections import Executor, Gateway
from vigil.subjects import SessionKey

NO_SANDBOX = Choice(kind="off", reasons=("bubblewrap: no", "landlock: no"), is_offered=False)


def settings_of(home: Path, *, room_bytes: int = 0, **executor: Any) -> Settings:
    """`room_bytes`: what the gateway wants free on the disk."""
    gateway = Gateway(disk_free_bytes_min=room_bytes)
    return Settings(config=Config(executor=Executor(**executor), gateway=gateway), home=home)


def choice_of(kind: Kind) -> Choice:
    return Choice(kind=kind)


def call_of(
    name: str, config: Config, arguments: dict[str, Any], *, is_tainted: bool = False,
    user: str = "ann", call_id: str = "",
) -> Call:  # fmt: skip
    return Call(
        id=call_id or uuid4().hex,
        key=SessionKey.of(user, "vigil", "t1"),
        tool=declared()[name].tool(config),
        input=arguments,
        due_at=datetime.now(UTC) + timedelta(minutes=5),
        is_tainted=is_tainted,
    )


class Hands:
    """The tools of one home."""

    def __init__(self, home: Path, choice: Choice = NO_SANDBOX, **executor: Any) -> None:
        self.settings = settings_of(home, **executor)
        self.source = Builtin(self.settings, SystemClock(), choice, cast(Bus, None))

    @property
    def workspace(self) -> Path:
        return self.settings.workspaces / "vigil" / "ann"

    async def call(
        self, name: str, /, *, is_tainted: bool = False, user: str = "ann",
        output_bytes_max: int = 0, **arguments: Any,
    ) -> ToolOutput:  # fmt: skip
        call = call_of(name, self.settings.config, arguments, is_tainted=is_tainted, user=user)
        if output_bytes_max:
            tool = msgspec.structs.replace(call.tool, output_bytes_max=output_bytes_max)
            call = msgspec.structs.replace(call, tool=tool)
        return await self.source.run(call)
