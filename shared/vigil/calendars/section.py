"""A person's calendar: a section ``[calendars.NAME]``, and what must hold of it. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from ..errors import ConfigError, InvalidInput
from ..fields.section import PositiveS, Section
from ..net.ssrf import ANYWHERE, target_of
from ..subjects import Scope
from ..zones.database import refusal_of

CalendarKind = Literal["caldav", "ics", "file"]
MIB: Final = 1024**2
NAME_LENGTH_MAX: Final = 32
POLL_S_MIN: Final = 10.0
_BYTES: Final = msgspec.Meta(ge=64 * 1024, le=256 * MIB)


class CalendarSection(Section, frozen=True, kw_only=True):
    """A calendar of a person, which their agent looks into, and changes if that is allowed.

    NAME is of `A-Z a-z 0-9 _ -`, up to 32.
    """

    kind: CalendarKind
    """A collection on a CalDAV server; an iCalendar document at an address; or a file."""
    url: str = ""
    """Of the collection, or the document: https://dav.example/ann/work/"""
    file: str = ""
    """Of kind `file`: the path of an iCalendar document; relative to the home."""
    user: str = "me"
    """Whose it is."""
    agent: str = "vigil"
    """Who may look into it."""
    login: str = ""
    """The user name on its server; empty: nobody logs in."""
    password: str = ""
    """For logging in."""
    password_file: str = ""
    """Instead: a file with it; relative to the home. Read at each log-in."""
    is_writable: bool = False
    """Of kind `caldav`: events may be made, changed and cancelled, as approvals allow."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    poll_s: PositiveS = 300.0
    """How often to look; at least 10."""
    timeout_s: PositiveS = 30.0
    """For all of one look, or one change."""
    bytes_max: Annotated[int, _BYTES] = 16 * MIB
    """Of a larger calendar nothing is read."""
    zone: str = ""
    """Of events without one, as Europe/Berlin; empty: their owner's."""

    def __repr__(self) -> str:
        return f"CalendarSection(kind={self.kind!r}, user={self.user!r}, <address hidden>)"

    @property
    def scope(self) -> Scope:
        """Whose it is, and of which agent."""
        return Scope(self.agent, self.user)

    @property
    def has_login(self) -> bool:
        return bool(self.login or self.password or self.password_file)


def check(name: str, section: CalendarSection) -> None:
    """Check what the types don't say of a section ``[calendars.NAME]``.

    Raises:
        ConfigError: naming the section, the field and the reason.
    """
    try:
        if len(name) > NAME_LENGTH_MAX:
            raise InvalidInput("name", f"may have at most {NAME_LENGTH_MAX} characters")
        Scope.of(section.agent, section.user)
        _check_place(section)
        _check_login(section)
        if section.is_writable and section.kind != "caldav":
            raise InvalidInput("is_writable", "goes with kind = 'caldav': the others are only read")
        if section.poll_s < POLL_S_MIN:
            raise InvalidInput("poll_s", f"must be at least {POLL_S_MIN:g}")
        if section.zone and (reason := refusal_of(section.zone)):
            raise InvalidInput("zone", reason)
    except InvalidInput as error:
        raise ConfigError(f"[calendars.{name}]: {error}") from error


def _check_place(section: CalendarSection) -> None:
    """Raises: InvalidInput."""
    if section.kind == "file":
        if not section.file:
            raise InvalidInput("file", "is missing: the path of an iCalendar document")
        if section.url:
            raise InvalidInput("url", "doesn't go with kind = 'file'")
        if section.ca_file:
            raise InvalidInput("ca_file", "doesn't go with kind = 'file'")
        return
    if section.file:
        raise InvalidInput("file", f"doesn't go with kind = {section.kind!r}")
    if not section.url:
        raise InvalidInput("url", f"is missing: where the {KINDS[section.kind]} is")
    target_of(address_of(section.url), ANYWHERE)
    if urlsplit(section.url).fragment:
        raise InvalidInput("url", "may have no #fragment")
    if section.kind == "caldav" and not urlsplit(section.url).path.endswith("/"):
        raise InvalidInput("url", "of a collection must end with /")


def _check_login(section: CalendarSection) -> None:
    """Raises: InvalidInput."""
    if not section.has_login:
        return
    if section.kind == "file":
        raise InvalidInput("login", "doesn't go with kind = 'file'")
    if not section.login:
        raise InvalidInput("login", "is missing beside a password")
    if ":" in section.login or not section.login.isprintable():
        raise InvalidInput("login", "may hold no colon and no control characters")
    if section.password and section.password_file:
        raise InvalidInput("password", "is given twice: leave it or password_file away")
    if not section.password and not section.password_file:
        raise InvalidInput("password", "is missing: set it, or password_file")
    if not is_private_line(section.url):
        raise InvalidInput("url", "must begin with https:// where a password is sent")


KINDS: Final[dict[CalendarKind, str]] = {
    "caldav": "collection of a CalDAV server",
    "ics": "iCalendar document",
    "file": "file",
}


def address_of(url: str) -> str:
    """Return an address as it is fetched: `webcal` says by which program.

    >>> address_of("webcal://a.example/x.ics")
    'https://a.example/x.ics'
    """
    scheme, separator, rest = url.partition("://")
    return f"https://{rest}" if separator and scheme in ("webcal", "webcals") else url


def is_private_line(url: str) -> bool:
    """Whether nobody between reads what is sent there.

    >>> is_private_line("https://a.example/"), is_private_line("http://127.0.0.1:5232/")
    (True, True)
    >>> is_private_line("http://nas.local/")
    False
    """
    parts = urlsplit(address_of(url))
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
