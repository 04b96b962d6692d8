"""The kind `mail`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ...checks import Check, fail, of_secret, ok, warn
from ...errors import InvalidInput
from ...fields.section import PositiveS
from ...mail import ids
from ...mail.access import Access
from ...mail.servers import PortNumber, Security, imap_port, missing_libraries, smtp_port
from ..contract import Channel, ChannelContext, Listener, Sender

_ADVICE: Final = "see docs/mail.md"


class MailAccount(Channel, frozen=True, kw_only=True, tag="mail"):
    """An e-mail account of the agent's own: it writes by SMTP and, with `imap_host`, reads by IMAP.

    People are written to at, and heard from, addresses that they paired (`vigil mail pair`).
    """

    address: str
    """Of the account, which is the agent's own."""
    aliases: tuple[str, ...] = ()
    """Other addresses of it: what is written to them is heard, too."""
    name: str = "Vigil"
    """Shown beside the address."""
    smtp_host: str
    """Where it sends."""
    smtp_port: PortNumber = 0
    """0: 465, 587 with `starttls`, 25 with `none`."""
    smtp_security: Security = "tls"
    """`none`: not encrypted, for a server on this machine."""
    imap_host: str = ""
    """Empty: it only writes."""
    imap_port: PortNumber = 0
    """0: 993, else 143."""
    imap_security: Security = "tls"
    """Likewise."""
    mailbox: str = "INBOX"
    """What is read, and never changed."""
    user: str = ""
    """For logging in; empty: `address`."""
    password: str = ""
    """For logging in."""
    password_file: str = ""
    """Instead: a file with it; relative to the home. Read at each login."""
    token_command: tuple[str, ...] = ()
    """Instead: a program and its arguments that prints an OAuth 2 access token (XOAUTH2)."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    agent: str = "vigil"
    """Who is written to."""
    authserv_id: str = ""
    """The server whose Authentication-Results say that a mail is of whom From names (RFC 8601);
    `*.example.org`: any below that name."""
    rejects_forgeries: bool = False
    """The server lets in no mail whose From is forged; without that, and without `authserv_id`,
    nobody is heard."""
    console_url: str = ""
    """Where people reach the console, for links to it: https://vigil.example; empty: as
    `gateway.public_url` says."""
    poll_s: PositiveS = 60.0
    """How often to look for mail where the server tells nothing by itself (IDLE)."""
    mail_bytes_max: Annotated[int, msgspec.Meta(ge=64 * 1024)] = 25 * 1024**2
    """Of a larger mail the rest isn't read."""
    timeout_s: PositiveS = 60.0
    """Per attempt to send, with all of it."""
    backoff_base_s: PositiveS = 30.0
    """First delay; doubles, randomly shortened by up to half."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check(context)
        from .sender import MailSender

        return MailSender(self, self.access(context.home), context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self._check(context)
        if not self.imap_host:
            return None
        from .listener import MailListener

        return MailListener(self, self.access(context.home), context)

    def access(self, home: Path) -> Access:
        """Return how to log in."""
        return Access(
            user=self.user or self.address,
            password=self.password,
            password_file=self.password_file,
            token_command=self.token_command,
            home=home,
        )

    def smtp(self) -> tuple[str, int]:
        return self.smtp_host, smtp_port(self.smtp_port, self.smtp_security)

    def imap(self) -> tuple[str, int]:
        return self.imap_host, imap_port(self.imap_port, self.imap_security)

    def is_meant(self, to: Collection[str]) -> bool:
        """Whether a mail to these addresses, in lower case, is to the account; with what may stand
        behind a plus."""
        own = {one.lower() for one in (self.address, *self.aliases)}
        return any(re.sub(r"\+[^@]*(?=@)", "", one) in own or one in own for one in to)

    @property
    def is_answering(self) -> bool:
        return bool(self.imap_host)

    @property
    def paired_at(self) -> str:
        return self.address if self.imap_host else ""

    @property
    def agent_id(self) -> str:
        return self.agent

    @property
    def has_proof(self) -> bool:
        """Whether anything tells a forged mail from another."""
        return bool(self.authserv_id) or self.rejects_forgeries

    def check_may_pair(self, address: str) -> None:
        """Check that an address can become somebody's. Raises: InvalidInput."""
        if not ids.is_address(address):
            raise InvalidInput("address", "is no plain address")
        if not self.imap_host:
            raise InvalidInput("imap_host", "is not set: the account hears nothing")
        if not self.has_proof:
            raise InvalidInput(
                "authserv_id",
                "is not set, so nothing tells a forged mail from another: set it, or "
                "rejects_forgeries if its server lets none in",
            )

    def _check(self, context: ChannelContext) -> None:
        self._check_fields(context.home)
        for field, (_, port) in (("smtp_port", self.smtp()), ("imap_port", self.imap())):
            if port in context.ports_never:
                raise InvalidInput(field, "is the broker's")

    def _check_fields(self, home: Path) -> None:
        """Raises: InvalidInput."""
        if missing := missing_libraries():
            raise InvalidInput("kind", missing)
        if not ids.is_address(self.address):
            raise InvalidInput("address", "is no plain address")
        for one in self.aliases:
            if not ids.is_address(one):
                raise InvalidInput("aliases", f"{one!r} is no plain address")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: no mail server drops repeats")
        if not self.smtp_host:
            raise InvalidInput("smtp_host", "must not be empty")
        if self.console_url and not self.console_url.startswith(("https://", "http://")):
            raise InvalidInput("console_url", "must begin with https://")
        self.access(home).check()

    def examine(self, home: Path) -> Check:
        try:
            self._check_fields(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        if (found := of_secret(home, self.password_file)) is not None:
            return found
        where = f"{self.address}: out by {self.smtp_host}"
        if not self.imap_host:
            return ok(f"{where}; it hears nothing")
        if not self.has_proof:
            return warn(
                f"{where}; nobody is heard: From can be forged",
                "set authserv_id, or rejects_forgeries if the server does that",
            )
        return ok(f"{where}, in by {self.imap_host}")
