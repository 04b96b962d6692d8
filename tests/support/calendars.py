"""iCalendar text as others write it, a real CalDAV server, and calendars read by both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx2

from tests.support.pauses import pauses
from vigil.broker import ports

LOGIN: Final = "ann"
PASSWORD: Final = "a-secret-of-the-tests"
COLLECTION: Final = "/ann/work/"
UP_S: Final = 30.0


def event(uid: str, start: str, *lines: str, title: str = "") -> str:
    """Write an event. `start` is what stands behind DTSTART: ``:20261201T090000Z``."""
    own = (f"UID:{uid}", "DTSTAMP:20260101T000000Z", f"DTSTART{start}", *lines)
    return "\r\n".join(("BEGIN:VEVENT", *own, f"SUMMARY:{title or uid}", "END:VEVENT", ""))


def calendar(*parts: str) -> str:
    head = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//tests//EN\r\n"
    return f"{head}{''.join(parts)}END:VCALENDAR\r\n"


def zone(name: str, offset: str) -> str:
    """Write a zone whose clocks never change."""
    return "\r\n".join(
        ("BEGIN:VTIMEZONE", f"TZID:{name}", "BEGIN:STANDARD", "DTSTART:19700101T000000",
         f"TZOFFSETFROM:{offset}", f"TZOFFSETTO:{offset}", "END:STANDARD", "END:VTIMEZONE", "")
    )  # fmt: skip


class Radicale:
    """Radicale on loopback, with one person and one calendar; it may be killed and come back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = ports.free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.set_password(PASSWORD)
        (folder / "config").write_text(
            f"[server]\nhosts = 127.0.0.1:{self.port}\n"
            f"[auth]\ntype = htpasswd\nhtpasswd_filename = {folder}/users\n"
            "htpasswd_encryption = plain\ndelay = 0\n"
            f"[storage]\nfilesystem_folder = {folder}/data\n"
            "[logging]\nlevel = debug\nrequest_header_on_debug = true\n"
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{COLLECTION}"

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text("utf-8", "replace")

    def set_password(self, password: str) -> None:
        (self._folder / "users").write_text(f"{LOGIN}:{password}\n")

    def client(self) -> httpx2.AsyncClient:
        """Return a client that is logged in."""
        base = f"http://127.0.0.1:{self.port}"
        return httpx2.AsyncClient(base_url=base, auth=(LOGIN, PASSWORD), trust_env=False)

    async def start(self) -> None:
        command = [sys.executable, "-m", "radicale", "--config", str(self._folder / "config")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        async with asyncio.timeout(UP_S), self.client() as client:
            pause_s = pauses()
            while True:
                try:
                    await client.get("/.web/")
                except httpx2.TransportError:
                    await asyncio.sleep(next(pause_s))
                else:
                    return

    async def make(self) -> None:
        """Make the calendar."""
        async with self.client() as client:
            assert (await client.request("MKCALENDAR", COLLECTION)).status_code == 201

    async def remove(self) -> None:
        """Remove the calendar with all that is in it."""
        async with self.client() as client:
            assert (await client.delete(COLLECTION)).status_code == 200

    def forget(self) -> None:
        """Empty the log, which is only appended to."""
        os.truncate(self._folder / "log", 0)

    async def put(self, name: str, data: str) -> None:
        """Store an object as another client does."""
        async with self.client() as client:
            headers = {"content-type": "text/calendar"}
            answer = await client.put(f"{COLLECTION}{name}", content=data, headers=headers)
            assert answer.status_code in (201, 204), answer.text

    async def delete(self, name: str) -> None:
        async with self.client() as client:
            assert (await client.delete(f"{COLLECTION}{name}")).status_code == 200

    async def all(self) -> str:
        """Return the whole calendar."""
        async with self.client() as client:
            return (await client.get(COLLECTION)).text

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Have it hang."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def running_radicale(folder: Path) -> AsyncIterator[Radicale]:
    """One with an empty calendar."""
    server = Radicale(folder)
    try:
        await server.start()
        await server.make()
        yield server
    finally:
        server.kill()
