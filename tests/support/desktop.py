"""A real D-Bus daemon, and a desktop on it that shows what it's told, or doesn't."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from jeepney import HeaderFields, Message, MessageType, new_error, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.asyncio import DBusConnection, DBusRouter, Proxy, open_dbus_connection

from vigil.processes.process import Process, start

DAEMON: Final = shutil.which("dbus-daemon")
NAME: Final = "org.freedesktop.Notifications"
SIGNATURE: Final = "susssasa{sv}i"
"""Of `Notify`, by the specification 1.2."""
Answer = Callable[[Message, int], Message | None]


def shown(asked: Message, number: int) -> Message | None:
    return new_method_return(asked, "u", (number,))


def refused(asked: Message, number: int) -> Message | None:
    return new_error(asked, "org.freedesktop.Notifications.Error.ExcessNotificationGeneration")


def silent(asked: Message, number: int) -> Message | None:
    return None


class DesktopServer:
    """What shows notifications on one bus."""

    def __init__(self, *capabilities: str) -> None:
        self.capabilities = capabilities
        self.answer: Answer = shown
        self.notices: list[tuple[Any, ...]] = []
        self.was_asked = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self, address: str) -> AsyncIterator[None]:
        connection = await open_dbus_connection(address)
        async with DBusRouter(connection) as router:
            await Proxy(message_bus, router).RequestName(NAME)
        serving = asyncio.create_task(self._serve(connection), name="desktop")
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await connection.close()

    async def _serve(self, connection: DBusConnection) -> None:
        while True:
            asked = await connection.receive()
            if asked.header.message_type is not MessageType.method_call:
                continue
            method = asked.header.fields[HeaderFields.member]
            answer: Message | None
            if method == "GetCapabilities":
                answer = new_method_return(asked, "as", (list(self.capabilities),))
            else:
                assert (method, asked.header.fields[HeaderFields.signature]) == (
                    "Notify",
                    SIGNATURE,
                )
                self.notices.append(asked.body)
                answer = self.answer(asked, len(self.notices))
                self.was_asked.set()
            if answer is not None:
                await connection.send(answer)


@contextlib.asynccontextmanager
async def running_bus(folder: Path) -> AsyncIterator[tuple[str, Process]]:
    """A bus of its own; yields its address, and the process to be killed."""
    if DAEMON is None:
        pytest.skip("there is no dbus-daemon")
    address = f"unix:path={folder / 'bus'}"
    process = await start(
        DAEMON, "--session", "--nofork", "--nopidfile", f"--address={address}", "--print-address",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        await process.stdout.readline()  # it listens
        yield address, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
