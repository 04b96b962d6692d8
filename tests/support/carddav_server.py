"""A real Radicale on loopback and a free port, with ann's address book in it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2

from tests.support.pauses import pauses
from vigil.broker.ports import free_port

PASSWORD: Final = "correct-horse"
START_S: Final = 30.0
CONFIG: Final = """
[server]
hosts = 127.0.0.1:{port}
[auth]
type = htpasswd
htpasswd_filename = {root}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {root}/collections
[logging]
level = info
"""
MAKE: Final = """<?xml version="1.0"?>
<mkcol xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav"><set><prop><resourcetype>
<collection/><C:addressbook/></resourcetype></prop></set></mkcol>"""


class CardDavServer:
    """The server, and what ann does with her own program."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/ann/book/"
        self._client = httpx2.Client(auth=("ann", PASSWORD), trust_env=False)

    def put(self, name: str, card: str) -> None:
        """Store a card."""
        headers = {"content-type": "text/vcard"}
        self._client.put(f"{self.url}{name}.vcf", content=card, headers=headers).raise_for_status()

    def drop(self, name: str) -> None:
        self._client.delete(f"{self.url}{name}.vcf").raise_for_status()

    def log(self) -> str:
        return (self.root / "log").read_text()

    @contextlib.contextmanager
    def running(self) -> Iterator[CardDavServer]:
        self.root.mkdir(exist_ok=True)
        (self.root / "users").write_text(f"ann:{PASSWORD}\n")
        (self.root / "config").write_text(CONFIG.format(port=self.port, root=self.root))
        with (self.root / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "radicale", "--config", str(self.root / "config")],
                stdout=log,
                stderr=log,
            )
        try:
            self._await(process)
            self._client.request("MKCOL", self.url, content=MAKE).raise_for_status()
            yield self
        finally:
            self._client.close()
            process.terminate()
            process.wait()

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_S
        pause_s = pauses()
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(next(pause_s))


def card(name: str, *lines: str) -> str:
    """Return a vCard of somebody."""
    middle = "".join(f"{line}\r\n" for line in lines)
    return (
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{name}\r\nFN:{name}\r\nN:{name};;;;\r\n"
        f"{middle}END:VCARD\r\n"
    )
