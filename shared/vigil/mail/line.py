"""Keeps a mailbox open: connects, logs in, and after a failure again, later and later.

What a server refused as user name or password isn't shown to it again before it's another, or
hours later: asked again and again, servers lock accounts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeVar

import msgspec
import structlog

from ..backoff import Backoff
from ..clock import Clock
from ..texts.trouble import reason_of
from .access import Access, NoAccess, RefusedSecret
from .mailbox import IDLE_S, LoginRefused, Mailbox, MailboxLost, Opened
from .smtp import trust

log = structlog.get_logger("vigil.mail")

AGAIN: Final = Backoff(1.0, 300.0)
"""Pauses after a connection that was lost."""
PASSWORD_POLL_S: Final = 10.0
"""How often it's looked whether a refused password was corrected..."""
TOKEN_POLL_S: Final = 600.0
"""...or whether the program gives another token."""


class ImapServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where mail is read."""

    host: str
    port: int
    security: str
    """``tls``, ``starttls`` or ``none``."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    folder: str = "INBOX"


class ImapKeys(Protocol):
    """The keys of a section that say how a server is reached, beside its address."""

    @property
    def imap_security(self) -> str: ...

    @property
    def ca_file(self) -> str: ...


def imap_of(address: tuple[str, int], keys: ImapKeys, folder: str) -> ImapServer:
    """Return where mail is read."""
    host, port = address
    return ImapServer(
        host=host, port=port, security=keys.imap_security, ca_file=keys.ca_file, folder=folder
    )


class MailboxReading(Protocol):
    """One connection's worth of reading."""

    box: Mailbox
    was_open: bool
    """Whether it came so far that a failure is a new one."""

    async def run(self, opened: Opened) -> None:
        """Read what is there, and wait for more. Raises: MailboxLost, Unavailable, BusError."""
        ...


R = TypeVar("R", bound=MailboxReading)


class MailboxLine:
    """The way to one mailbox.

    Args:
        name: what logs call it.
    """

    def __init__(
        self, server: ImapServer, access: Access, home: Path, clock: Clock, name: str
    ) -> None:
        self._server = server
        self._access = access
        self._home = home
        self._name = name
        self._refused = RefusedSecret(clock)

    async def follow(self, begin: Callable[[], R], show: Callable[[R, str, str], None]) -> NoReturn:
        """Read until cancelled.

        Args:
            begin: makes what reads, anew for each connection.
            show: told the state and the problem of one that ended: ``refused`` or ``away``.

        Raises:
            Unavailable, BusError: the broker is away.
        """
        failures = 0
        while True:
            reading = begin()
            wait_s = PASSWORD_POLL_S
            try:
                secret = await self._access.secret()
                if not self._refused.waits_s(secret):
                    await reading.run(await self.open(reading.box, secret))
            except LoginRefused as error:
                why = f"the server refuses user name or password: {error}; correct it"
                show(reading, "refused", why)
                log.warning("log-in refused", action="mail.refused", channel=self._name)
            except (MailboxLost, OSError) as error:
                failures = 1 if reading.was_open else failures + 1
                wait_s = AGAIN.after(failures)
                show(reading, "away", reason_of(error))
                log.info(
                    "mailbox lost",
                    action="mail.lost",
                    channel=self._name,
                    error=str(error),
                    wait_s=wait_s,
                )
            except NoAccess as error:
                show(reading, "refused", str(error))
            finally:
                await reading.box.close()
            await asyncio.sleep(max(wait_s, TOKEN_POLL_S if self._waits_for_token() else 0.0))

    def _waits_for_token(self) -> bool:
        return self._access.is_token and self._refused.is_noted

    async def open(self, box: Mailbox, secret: str) -> Opened:
        """Connect, log in and open the folder read-only. Raises: LoginRefused, MailboxLost."""
        server = self._server
        is_open = server.security == "none"
        try:
            opened = await box.open(
                server.host,
                server.port,
                security=server.security,
                trust=None if is_open else trust(server.ca_file, self._home),
                user=self._access.user,
                secret=secret,
                is_token=self._access.is_token,
                folder=server.folder,
            )
        except LoginRefused:
            self._refused.note(secret)
            raise
        self._refused.clear()
        return opened

    async def opened(self, box: Mailbox) -> Opened:
        """Open it once, for whoever asks. Raises: NoAccess, LoginRefused, MailboxLost, OSError."""
        secret = await self._access.secret()
        if self._refused.waits_s(secret):
            raise NoAccess("the server refused user name or password before; correct it")
        return await self.open(box, secret)


async def wait_for_change(box: Mailbox, poll_s: float) -> None:
    """Wait until the server tells that something changed, or time is over: what is told is a hint,
    so it's looked in any case. Raises: MailboxLost."""
    within_s = min(poll_s, IDLE_S)
    if box.has_idle:
        await box.wait(within_s)
    else:
        await asyncio.sleep(within_s)
