"""One source, read: a list of the configuration, a vCard file, or a collection on a server."""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
import stat
from datetime import datetime
from pathlib import Path
from typing import Final

from .. import distribution
from ..clock import Clock
from ..errors import InvalidInput, VigilError
from ..fields import secrets
from ..fields.secrets import Secret
from ..mail.access import RefusedSecret
from ..net.ssrf import rules_to
from ..texts.trouble import reason_of
from ..words.contacts import parsed
from .record import Contact, ContactList, cleaned_address, cleaned_name, cleaned_phone, limited
from .section import ContactSource

FILE_BYTES_MAX: Final = 64 * 1024**2
LIBRARIES: Final = ("vobject", "httpx2")


class ContactsUnread(VigilError):
    """A source can't be read now; the text says why, without a secret."""


def missing() -> str:
    """Return what has to be installed for files and servers; empty: nothing."""
    absent = [one for one in LIBRARIES if importlib.util.find_spec(one) is None]
    command = distribution.command_for()
    return f"needs {', '.join(absent)}: {command}" if absent else ""


class ContactReader:
    """Reads one source, time and again."""

    def __init__(
        self,
        name: str,
        source: ContactSource,
        home: Path,
        clock: Clock,
        ports_never: tuple[int, ...],
    ) -> None:
        self._name = name
        self._source = source
        self._home = home
        self._clock = clock
        self._ports_never = ports_never
        self._refused = RefusedSecret(clock)

    async def read(self) -> ContactList:
        """Return what it holds now. Raises: ContactsUnread."""
        source, now = self._source, self._clock.now()
        if source.people:
            return self._list(now, *limited(map(contact_of_entry, source.people)))
        if needed := missing():
            raise ContactsUnread(needed)
        try:
            async with asyncio.timeout(source.timeout_s):
                data, is_open = await self._data()
                from .cards import read_cards

                read = await asyncio.to_thread(read_cards, data)
        except TimeoutError as error:
            raise ContactsUnread(f"no answer within {source.timeout_s:g} s") from error
        return self._list(now, read.contacts, read.left_out, is_open=is_open)

    def _list(
        self, at: datetime, contacts: tuple[Contact, ...], left_out: int, *, is_open: bool = False
    ) -> ContactList:
        whose = {"user": self._source.user, "source": self._name}
        return ContactList(**whose, at=at, contacts=contacts, left_out=left_out, is_open=is_open)

    async def _data(self) -> tuple[bytes, bool]:
        if self._source.file:
            return await asyncio.to_thread(read_file, self._source.file, self._home)
        return await self._asked(), False

    async def _asked(self) -> bytes:
        import httpx2

        from ..net.client import guarded_client
        from ..net.guard import GuardedTransport
        from .carddav import BookAway, BookRefused, cards_at

        source, secret = self._source, self._secret()
        if secret is not None and self._refused.waits_s(secret):
            raise ContactsUnread("the server refused user name or password before; correct it")
        try:
            rules = rules_to(source.url, self._ports_never)
            guard = GuardedTransport(rules, tls=self._trust())
            limits = httpx2.Timeout(source.timeout_s)
            async with guarded_client(guard, timeout=limits) as client:
                data = await cards_at(client, source.url, source.login, secret)
        except BookRefused as error:
            if secret is not None:
                self._refused.note(secret)
            raise ContactsUnread(str(error)) from error
        except (BookAway, InvalidInput, OSError) as error:
            raise ContactsUnread(reason_of(error)) from error
        self._refused.clear()
        return data

    def _secret(self) -> Secret | None:
        source = self._source
        if not source.login:
            return None
        try:
            return secrets.of_section("password", source.password, source.password_file, self._home)
        except InvalidInput as error:
            raise ContactsUnread(str(error)) from error

    def _trust(self) -> ssl.SSLContext | None:
        if not self._source.ca_file:
            return None
        file = self._home / Path(self._source.ca_file).expanduser()
        return ssl.create_default_context(cafile=str(file))


def contact_of_entry(entry: str) -> Contact:
    """Return whom an entry of a list names."""
    names, reached = parsed(entry)
    addresses = tuple(filter(None, map(cleaned_address, reached)))
    phones = () if addresses else tuple(filter(None, map(cleaned_phone, reached)))
    plain = [one for one in map(cleaned_name, names) if one]
    return Contact(
        name=plain[0] if plain else reached[0],
        names=tuple(plain[1:]),
        addresses=addresses,
        phones=phones,
    )


def read_file(file: str, home: Path) -> tuple[bytes, bool]:
    """Return what a file holds, and whether others than its owner can write it.

    Raises:
        ContactsUnread: it can't be read, or lies where agents write.
    """
    path = (home / Path(file).expanduser()).resolve()
    if path.is_relative_to((home / "workspaces").resolve()):
        raise ContactsUnread("it lies in a workspace, where agents write")
    try:
        with path.open("rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
            mode = path.stat().st_mode
            folder = path.parent.stat().st_mode
    except OSError as error:
        raise ContactsUnread(f"{path} can't be read: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        raise ContactsUnread(f"{path} has more than {FILE_BYTES_MAX // 1024**2} MiB")
    is_shared = folder & (stat.S_IWGRP | stat.S_IWOTH) and not folder & stat.S_ISVTX
    return data, bool(mode & (stat.S_IWGRP | stat.S_IWOTH) or is_shared)
