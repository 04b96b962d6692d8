"""What sends a mail by SMTP, and knows at each moment whether the server may have it.

Step by step: from the exception alone nobody can tell whether a connection was lost before the body
was complete (then nothing was sent, and it may be tried again) or after (then it may have been, and
no server drops repeats). Every try is the same bytes, with the same Message-ID.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPResponseException,
)

from ...contracts import Said, UserMessage, decode_event, decode_turn
from ...contracts.events import MailHead
from ...errors import InvalidInput, VigilError
from ...subjects import SessionKey
from ...teams import TEAM
from ..answers import Answer, NotTaken, Taken, Unclear
from ..contract import ChannelContext
from . import pairs
from .access import Access, NoAccess, RefusedSecret
from .composition import Letterhead, composed
from .heads import plain

if TYPE_CHECKING:
    from .section import MailAccount

REASON_LENGTH_MAX: Final = 300
QUIT_S: Final = 2.0
DRAIN_S: Final = 0.01
_DOTS: Final = re.compile(rb"(?m)^\.")


class MailSender:
    """One account's way out."""

    def __init__(self, account: MailAccount, access: Access, context: ChannelContext) -> None:
        self._account = account
        self._access = access
        self._context = context
        self._refusal = RefusedSecret(context.clock)
        self._letterhead = Letterhead(
            address=account.address, name=account.name, console_url=account.console_url
        )

    def __repr__(self) -> str:
        return f"MailSender({self._account.smtp_host!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            asked = await self._asked_by(said)
            to = await self._address_of(said, asked)
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        if to is None:
            reason = f"no address is paired; see `vigil mail pair {self._context.name}`"
            return NotTaken(reason=reason, is_final=True)
        head = None if asked is None else asked.payload.mail
        return await self._sent(said.id, to, composed(said, to, head, self._letterhead))

    async def _sent(self, effect_id: str, to: str, data: bytes) -> Answer:
        attempt = _SmtpTry()
        try:
            async with asyncio.timeout(self._account.timeout_s):
                return await self._try(attempt, effect_id, to, data)
        except TimeoutError:
            reason = f"no answer within {self._account.timeout_s:g} s"
        except SMTPResponseException as error:
            return attempt.refused(error.code, error.message)
        except (NoAccess, SMTPException, OSError, ValueError) as error:
            reason = _line(str(error)) or type(error).__name__
        return attempt.failed(reason)

    async def close(self) -> None:
        """Nothing: each try has a connection of its own."""

    # ------------------------------------------------------------ whom, and what it answers

    async def _asked_by(self, said: Said) -> UserMessage | None:
        """Return the message that it answers, if it answers one: the same in each try."""
        bus, key = self._context.bus, SessionKey.parse(said.session_key)
        if bus is None or not said.turn_seq:
            return None
        with contextlib.suppress(InvalidInput):  # of a form that a later version wrote
            stored = await bus.get_of(key, said.turn_seq)
            cause = None if stored is None else decode_turn(stored.data).event
            if cause is None or cause.type != "user_message":
                return None
            stored = await bus.get_of(key, cause.seq)
            event = None if stored is None else decode_event(stored.data)
            return event if isinstance(event, UserMessage) else None
        return None

    async def _address_of(self, said: Said, asked: UserMessage | None) -> str | None:
        bus, user = self._context.bus, SessionKey.parse(said.session_key).user
        if user == TEAM:  # whoever of it asked
            user = asked.payload.by if asked is not None else ""
        if bus is None or not user:
            return None
        person = await pairs.find(bus, self._context.name, user)
        mail: MailHead | None = None if asked is None else asked.payload.mail
        return pairs.address_for(person, "" if mail is None else mail.address)

    # ------------------------------------------------------------ SMTP

    async def _try(self, attempt: _SmtpTry, effect_id: str, to: str, data: bytes) -> Answer:
        secret = await self._access.secret()
        if wait_s := self._refusal.waits_s(secret):
            reason = "the server refused user name or password before; correct it"
            return NotTaken(reason=reason, wait_s=wait_s)
        client = self._client()
        try:
            await client.connect()
            await self._log_in(client, secret)
            has_reports = client.supports_extension("dsn")
            await client.mail(
                self._account.address,
                options=[f"SIZE={len(data)}"] * client.supports_extension("size")
                + ["RET=HDRS", f"ENVID={effect_id}"] * has_reports,
            )
            reports = ["NOTIFY=SUCCESS,FAILURE,DELAY"] * has_reports
            await client.rcpt(to, options=reports)
            attempt.stage = "sending it"
            answer = await self._body(client, attempt, data)
            await _leave(client)
            return answer
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

    async def _body(self, client: SMTP, attempt: _SmtpTry, data: bytes) -> Answer:
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
            return Taken(reason=_line(f"250 {answer.message}"))
        return attempt.refused(answer.code, answer.message)

    def _client(self) -> SMTP:
        account = self._account
        host, port = account.smtp()
        security = account.smtp_security
        return SMTP(
            hostname=host,
            port=port,
            local_hostname=self._letterhead.domain,
            use_tls=security == "tls",
            start_tls=security == "starttls",
            tls_context=None if security == "none" else trust(account.ca_file, self._context.home),
            timeout=account.timeout_s,
        )


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

    def failed(self, reason: str) -> Answer:
        """Return what it means that no answer came."""
        if self.is_complete:
            return Unclear(reason=f"after all of it was sent: {reason}")
        return NotTaken(reason=f"{self.stage}: {reason}")

    def refused(self, code: int, message: str) -> Answer:
        """Return what a server's answer means, whenever it came."""
        reason = _line(f"{code} {message}")
        if not 400 <= code < 600:
            return self.failed(f"an answer that means nothing here: {reason}")
        # A refused log-in is mended by a person, and then it's sent.
        is_final = code >= 500 and code not in (530, 534, 535, 538)
        return NotTaken(reason=reason, status=code, is_final=is_final)


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
