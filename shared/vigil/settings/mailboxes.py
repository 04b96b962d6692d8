"""``[mailboxes.NAME]``: a person's own mailbox, which an agent looks at for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ..errors import ConfigError, InvalidInput
from ..fields.section import PositiveS, Section
from ..mail import ids
from ..mail.access import Access
from ..mail.servers import PortNumber, Security, imap_port, smtp_port
from ..subjects import Scope
from ..teams import TEAM, Teams

NAME_LENGTH_MAX = 32
FACT: Final = "mailboxes"
"""What holds how each is, in the health of who follows them."""


class MailboxSection(Section, frozen=True, kw_only=True):
    """A person's own mailbox: an agent looks at it for them, and changes nothing in it.

    Whoever writes there is from outside, the person too ([mail.md](../mail.md#your-own-mailbox)).
    """

    user: str
    """Whose it is."""
    agent: str = "vigil"
    """Who looks at it."""
    address: str
    """The person's address there."""
    name: str = ""
    """Shown beside the address on what is sent."""
    imap_host: str
    """Where it is read."""
    imap_port: PortNumber = 0
    """0: 993, else 143."""
    imap_security: Security = "tls"
    """`none`: not encrypted, for a server on this machine."""
    smtp_host: str = ""
    """Where it sends; empty: nothing is sent."""
    smtp_port: PortNumber = 0
    """0: 465, 587 with `starttls`, 25 with `none`."""
    smtp_security: Security = "tls"
    """Likewise."""
    login: str = ""
    """For logging in; empty: `address`."""
    password: str = ""
    """For logging in."""
    password_file: str = ""
    """Instead: a file with it; relative to the home. Read at each login."""
    token_command: tuple[str, ...] = ()
    """Instead: a program and its arguments that prints an OAuth 2 access token (XOAUTH2)."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    folder: str = "INBOX"
    """What is looked at."""
    drafts: str = ""
    """Where drafts are put; empty: where the server says that they are, or `Drafts`."""
    sent: str = ""
    """Where a copy of what was sent is put; empty: the server does that, or nobody."""
    is_enabled: bool = True
    """False: nothing looks at it."""
    first_days: Annotated[int, msgspec.Meta(ge=0, le=365)] = 3
    """Of what is there at the first look so many days are taken in."""
    digest_s: Annotated[int, msgspec.Meta(ge=60, le=86_400)] = 1800
    """How often new mail is read that no rule sorts out: one call of a cheap model each time."""
    reader: bool = True
    """Whether a model reads it; false: mail is only sorted by rules."""
    daily_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """What reading it may take a day; 0: as other rows of the timetable."""
    poll_s: PositiveS = 60.0
    """How often to look for mail where the server tells nothing by itself (IDLE)."""
    mail_bytes_max: Annotated[int, msgspec.Meta(ge=16 * 1024)] = 256 * 1024
    """Of a larger mail the rest isn't looked at."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=200)] = 60.0
    """For sending a mail, with all of it."""

    def __repr__(self) -> str:
        return f"MailboxSection({self.address!r}, <rest hidden>)"

    @property
    def scope(self) -> Scope:
        return Scope(self.agent, self.user)

    def access(self, home: Path) -> Access:
        """Return how to log in."""
        return Access(
            user=self.login or self.address,
            password=self.password,
            password_file=self.password_file,
            token_command=self.token_command,
            home=home,
        )

    def smtp(self) -> tuple[str, int]:
        return self.smtp_host, smtp_port(self.smtp_port, self.smtp_security)

    def imap(self) -> tuple[str, int]:
        return self.imap_host, imap_port(self.imap_port, self.imap_security)


def check(name: str, mailbox: MailboxSection) -> None:
    """Check what the types don't say of a section. Raises: ConfigError, with no secret in it."""
    try:
        check_fields(name, mailbox)
    except InvalidInput as error:
        raise ConfigError(f"[mailboxes.{name}]: {error}") from error


def check_fields(name: str, mailbox: MailboxSection) -> None:
    """Raises: InvalidInput, naming the field."""
    Scope.of(mailbox.agent, mailbox.user)
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidInput("name", f"may have at most {NAME_LENGTH_MAX} characters")
    if not ids.is_address(mailbox.address):
        raise InvalidInput("address", "is no plain address")
    for field in ("imap_host", "folder"):
        if not getattr(mailbox, field):
            raise InvalidInput(field, "must not be empty")
    for field in ("imap_host", "smtp_host", "login", "name", "folder", "drafts", "sent"):
        value = getattr(mailbox, field)
        if not value.isprintable() or value != value.strip():
            raise InvalidInput(field, "must be printable, without blanks at its ends")
    given = (mailbox.password, mailbox.password_file, mailbox.token_command)
    if sum(map(bool, given)) != 1:
        raise InvalidInput("password_file", "set it, or password, or token_command: one of them")


def contradictions(mailboxes: Mapping[str, MailboxSection], teams: Teams) -> list[str]:
    """List what can't be together, though each may be alone."""
    found = [
        f"[mailboxes.{name}]: user must be a person, and agent no team's: a mailbox is one person's"
        for name, one in mailboxes.items()
        if one.user == TEAM or one.agent in teams
    ]
    places = [(one.imap_host, one.login or one.address, one.folder) for one in mailboxes.values()]
    return found + [
        f"[mailboxes.{name}]: another section is about the same folder"
        for place, name in zip(places, mailboxes, strict=True)
        if places.index(place) != [*mailboxes].index(name)
    ]
