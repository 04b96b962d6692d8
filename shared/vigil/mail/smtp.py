"""What hands a mail to a server by SMTP, and knows at each moment whether the server may have it.

Step by step: from the exception alone nobody can tell whether a connection was lost before the body
was complete (then nothing was sent, and it may be tried again) or after (then it may have been, and
no server drops repeats).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from itertools import repeat
from pathlib import Path
from typing import Final, Literal, Protocol, cast

import msgspec
from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPResponseException,
)

from ..clock import Clock
from ..texts.trouble import reason_of
from . import ids
from .access import Access, NoAccess, RefusedSecret
from .heads import plain

REASON_LENGTH_MAX: Final = 300
QUIT_S: Final = 2.0
DRAIN_S: Final = 0.01
_DOTS: Final = re.compile(rb"(?m)^\.")


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where mail is handed over."""

    host: str
    port: int
    security: str
    """``tls``, ``starttls`` or ``none``."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    timeout_s: float
    """Per attempt, with all of it."""


class SmtpKeys(Protocol):
    """The keys of a section that say how a server is reached, beside its address."""

    @property
    def smtp_security(self) -> str: ...

    @property
    def ca_file(self) -> str: ...

    @property
    def timeout_s(self) -> float: ...


def smtp_of(address: tuple[str, int], keys: SmtpKeys) -> SmtpServer:
    """Return where mail is handed over."""
    host, port = address
    return SmtpServer(
        host=host,
        port=port,
        security=keys.smtp_security,
        ca_file=keys.ca_file,
        timeout_s=keys.timeout_s,
    )


class MailEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """From whom to whom a mail goes, whatever it says itself."""

    sender: str
    to: tuple[str, ...]
    id: str
    """The same in each try; reports of servers name it."""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """How a try ended."""

    state: Literal["taken", "not_taken", "unclear"]
    """``unclear``: the server may have it."""
    reason: str = ""
    status: int | None = None
    """Of an answer that the server gave."""
    wait_s: float = 0.0
    """So many seconds it isn't to be tried again."""
    is_final: bool = False
    """It would be refused again."""
    refused: tuple[str, ...] = ()
    """Of several recipients those that the server didn't take, though it took the mail."""


class SmtpWay:
    """One account's way out."""

    def __init__(self, server: SmtpServer, access: Access, home: Path, clock: Clock) -> None:
        self._server = server
        self._access = access
        self._home = home
        self._refusal = RefusedSecret(clock)

    def __repr__(self) -> str:
        return f"SmtpWay({self._server.host!r})"

    async def hand_over(self, envelope: MailEnvelope, data: bytes) -> Handed:
        """Try once; never raises but when cancelled."""
        attempt = _SmtpTry()
        try:
            async with asyncio.timeout(self._server.timeout_s):
                return await self._try(attempt, envelope, data)
        except TimeoutError:
            reason = f"no answer within {self._server.timeout_s:g} s"
        except SMTPResponseException as error:
            return attempt.refused(error.code, error.message)
        except (NoAccess, SMTPException, OSError, ValueError) as error:
            reason = _line(reason_of(error))
        return attempt.failed(reason)

    async def log_in(self) -> str:
        """Connect and log in, and return what is wrong; empty: nothing, and nothing was sent."""
        client = self._client("localhost")
        try:
            async with asyncio.timeout(self._server.timeout_s):
                await client.connect()
                await self._log_in(client, await self._access.secret())
                await _leave(client)
        except TimeoutError:
            return f"no answer within {self._server.timeout_s:g} s"
        except SMTPResponseException as error:
            return _line(f"{error.code} {error.message}")
        except (NoAccess, SMTPException, OSError, ValueError) as error:
            return _line(reason_of(error))
        finally:
            client.close()
        return ""

    async def _try(self, attempt: _SmtpTry, envelope: MailEnvelope, data: bytes) -> Handed:
        secret = await self._access.secret()
        if wait_s := self._refusal.waits_s(secret):
            reason = "the server refused user name or password before; correct it"
            return Handed(state="not_taken", reason=reason, wait_s=wait_s)
        client = self._client(ids.domain_of(envelope.sender))
        try:
            await client.connect()
            await self._log_in(client, secret)
            has_reports = client.supports_extension("dsn")
            await client.mail(
                envelope.sender,
                options=[f"SIZE={len(data)}"] * client.supports_extension("size")
                + ["RET=HDRS", f"ENVID={envelope.id}"] * has_reports,
            )
            refused = await _name_recipients(client, envelope.to, has_reports=has_reports)
            attempt.stage = "sending it"
            answer = await self._body(client, attempt, data)
            await _leave(client)
            return msgspec.structs.replace(answer, refused=refused)
        finally:
            client.close()

    async def _log_in(self, client: SMTP, secret: str) -> None:
        try:
            if self._access.is_token:
                await client.auth_xoauth2(self._access.user, secret)
            else:
                await _by_password(client, self._access.user, secret)
        except SMTPAuthenticationError as error:
            if error.code == 535:  # another is of the moment: 454
                self._refusal.note(secret)
            raise

    async def _body(self, client: SMTP, attempt: _SmtpTry, data: bytes) -> Handed:
        """Hand the body over; from its last line on the server may have the mail."""
        begun = await client.execute_command(b"DATA")
        if begun.code != 354:
            return attempt.refused(begun.code, begun.message)
        protocol, transport = client.protocol, cast(asyncio.WriteTransport | None, client.transport)
        if protocol is None or transport is None:
            return attempt.failed("the connection is gone")
        protocol.write(_DOTS.sub(b"..", data))
        for _ in repeat(None):
            if not transport.get_write_buffer_size() or transport.is_closing():
                break
            await asyncio.sleep(DRAIN_S)
        if transport.is_closing():
            return attempt.failed("the connection was lost in the middle")
        attempt.is_complete = True
        protocol.write(b".\r\n")
        answer = await protocol.read_response()
        if answer.code == 250:
            return Handed(state="taken", reason=_line(f"250 {answer.message}"))
        return attempt.refused(answer.code, answer.message)

    def _client(self, local_hostname: str) -> SMTP:
        server = self._server
        is_open = server.security == "none"
        return SMTP(
            hostname=server.host,
            port=server.port,
            local_hostname=local_hostname,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            tls_context=None if is_open else trust(server.ca_file, self._home),
            timeout=server.timeout_s,
        )


async def _name_recipients(
    client: SMTP, to: tuple[str, ...], *, has_reports: bool
) -> tuple[str, ...]:
    """Tell the server whom the mail is for, and return whom it doesn't take. Raises: SMTPException,
    it takes nobody."""
    options = ["NOTIFY=SUCCESS,FAILURE,DELAY"] * has_reports
    refused: list[str] = []
    for number, one in enumerate(to, 1):
        try:
            await client.rcpt(one, options=options)
        except SMTPResponseException:
            refused.append(one)
            if len(refused) == number == len(to):
                raise
    return tuple(refused)


async def _by_password(client: SMTP, user: str, secret: str) -> None:
    """Log in by one mechanism: the library would go on to the next with what was refused, and a
    server count three failures."""
    await client.ehlo()  # what it knows may be told only once the line is encrypted
    known = client.supported_auth_methods
    if "plain" in known:
        await client.auth_plain(user, secret)
    elif "login" in known:
        await client.auth_login(user, secret)
    else:
        await client.login(user, secret)


class _SmtpTry:
    """How far one try got, which decides what its failure means."""

    def __init__(self) -> None:
        self.stage = "before it was sent"
        self.is_complete = False
        """Whether the server may have all of it."""

    def failed(self, reason: str) -> Handed:
        """Return what it means that no answer came."""
        if self.is_complete:
            return Handed(state="unclear", reason=f"after all of it was sent: {reason}")
        return Handed(state="not_taken", reason=f"{self.stage}: {reason}")

    def refused(self, code: int, message: str) -> Handed:
        """Return what a server's answer means, whenever it came."""
        reason = _line(f"{code} {message}")
        if not 400 <= code < 600:
            return self.failed(f"an answer that means nothing here: {reason}")
        # A refused log-in is mended by a person, and then it's sent.
        is_final = code >= 500 and code not in (530, 534, 535, 538)
        return Handed(state="not_taken", reason=reason, status=code, is_final=is_final)


def trust(ca_file: str, home: Path) -> ssl.SSLContext:
    """Return whom to trust. Raises: OSError, ssl.SSLError: the file can't be used."""
    file = str(home / Path(ca_file).expanduser()) if ca_file else None
    return ssl.create_default_context(cafile=file)


async def _leave(client: SMTP) -> None:
    """Take leave; how that ends is nobody's matter."""
    with contextlib.suppress(SMTPException, OSError, TimeoutError):
        await client.quit(timeout=QUIT_S)


def _line(text: str) -> str:
    return plain(text)[:REASON_LENGTH_MAX]
