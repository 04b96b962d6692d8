"""Accounts of one broker that all tests of this process share: a fifth of the CPU of a broker each.

An account has streams, consumers and credentials of its own, and nothing reaches from one into
another. Whoever kills, pauses or configures the broker, or reads its files, needs one of their own:
``pytest.mark.usefixtures("own_broker")``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support import provisioned
from tests.support.ends import ended_with_parent
from vigil.broker import conf, ports, process
from vigil.bus.bus import Bus
from vigil.errors import Unavailable
from vigil.outside import programs
from vigil.settings import credentials
from vigil.settings.sections import Nats, Retention
from vigil.topology import ADMIN

is_offered = True
"""Whether tests get an account now."""
ACCOUNTS: Final = 10
"""Of one server: an account is used once, and then the server ends."""
TAKEN: Final = "address already in use"
"""What a server says whose port is another's."""
TRIES: Final = 3
_FRUGAL: Final = {"GOMAXPROCS": "1", "GOGC": "400"}
"""A fifth less CPU of a start: other cores have tests of their own, and memory there is enough."""


class Lent:
    """An account, as `Broker` shows a server of one's own."""

    def __init__(self, server: _Server, nkeys: Path) -> None:
        self.server = server
        self.nkeys = nkeys
        self.port = server.port
        self.url = f"nats://127.0.0.1:{server.port}"

    async def admin(self, wait_s: float = 10.0) -> Bus:
        seed = credentials.load(self.nkeys, ADMIN)
        return await Bus.connect(self.url, role=ADMIN, seed=seed, wait_s=wait_s)


class _Server:
    """A server with some accounts, each of which is lent once."""

    def __init__(self, stored: provisioned.Stored) -> None:
        self.users = 0
        self.port = ports.free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="lent-"))
        self._left = list(_nkeys())
        for name in _nkeys():
            stored.copy(self._folder / "data" / "jetstream" / name)
        file = self._folder / "nats.conf"
        file.write_bytes(_configuration(self._folder / "data", self.port))
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                **ended_with_parent([str(process.binary()), "-c", str(file)]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | _FRUGAL,
            )  # fmt: skip

    def lend(self) -> Lent | None:
        """Return an account that nobody had; None: all were lent, or it ended."""
        if not self._left or self.why_ended():
            return None
        return Lent(self, _nkeys()[self._left.pop()])

    def why_ended(self) -> str:
        """Return what it said last, empty: it runs."""
        if self._process.poll() is None:
            return ""
        return (self._folder / "log").read_text("utf-8", "replace")[-2000:] or "it said nothing"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)


@functools.cache
def _nkeys() -> dict[str, Path]:
    """Return the accounts of any server, and where the credentials of each are."""
    folder = Path(tempfile.mkdtemp(prefix="nkeys-"))
    names = [f"T{number}" for number in range(ACCOUNTS)]
    return {name: folder / name for name in names}


@functools.cache
def _accounts() -> dict[str, Any]:
    """Return what each account may, which is the same on any server."""
    return {
        name: _configured(folder, store=Path(), port=0)["accounts"][programs.ACCOUNT]
        for name, folder in _nkeys().items()
    }


def _configured(nkeys: Path, *, store: Path, port: int) -> dict[str, Any]:
    publics = credentials.ensure(nkeys)
    text = conf.configuration(Nats(), store=store, port=port, publics=publics)
    made: dict[str, Any] = msgspec.json.decode(text)
    return made


def _configuration(store: Path, port: int) -> bytes:
    one = _configured(next(iter(_nkeys().values())), store=store, port=port)
    return msgspec.json.encode(one | {"accounts": _accounts()})


_servers: Final[defaultdict[provisioned.Stored, list[_Server]]] = defaultdict(list)
"""The last one lends; the one before, and whichever has users, may be come back to."""
_lent: Final[dict[Path, Lent]] = {}
"""By the home that has the credentials."""


def suits(home: Path, nats: Nats, retention: Retention) -> bool:
    """Whether the broker of `home` may be a lent one."""
    if not is_offered or (nats, retention) != (provisioned.ONE_LOG, Retention()):
        return False
    return home in _lent or not any((home / name).exists() for name in ("nats", "nkeys"))


@contextlib.asynccontextmanager
async def lent(home: Path) -> AsyncIterator[Lent]:
    """An account whose credentials are in `home`: the one of before, if this home had one."""
    is_new = home not in _lent
    if is_new:
        # Services see by it that the broker's disk is theirs.
        (home / "nats" / "data").mkdir(parents=True)
        account, admin = await _reached(await provisioned.stored(Retention()))
        shutil.copytree(account.nkeys, home / "nkeys")
        _lent[home] = account
        await provisioned.complete(admin)
        await admin.close()
    else:
        account = _lent[home]
    account.server.users += 1
    try:
        yield account
    finally:
        account.server.users -= 1


async def _reached(stored: provisioned.Stored) -> tuple[Lent, Bus]:
    """Return an account of a server that is there, and a connection to it.

    Another broker may have taken a server's port since it was found free: then of the next one.
    """
    for _ in range(TRIES):
        account = _next(stored)
        for wait_s in (1.0, 10.0):
            try:
                return account, await account.admin(wait_s)
            except Unavailable as error:
                problem = error
            if why := account.server.why_ended():
                break
        if TAKEN not in why:
            raise Unavailable(f"{problem}: {why or 'its server runs'}") from problem
    raise Unavailable("each server's port was taken")


def _next(stored: provisioned.Stored) -> Lent:
    servers = _servers[stored]
    if servers and (account := servers[-1].lend()):
        return account
    for server in servers[:-1]:
        if not server.users:
            _end(server)
            servers.remove(server)
    servers.append(_Server(stored))
    account = servers[-1].lend()
    assert account is not None
    return account


def _end(server: _Server) -> None:
    server.end()
    for home in [home for home, account in _lent.items() if account.server is server]:
        del _lent[home]


def end() -> None:
    """End all servers, with the tests of this process."""
    for servers in _servers.values():
        for server in servers:
            _end(server)
    if _nkeys.cache_info().currsize:
        shutil.rmtree(next(iter(_nkeys().values())).parent)
