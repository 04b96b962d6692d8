"""A list of people whom somebody knows: a section ``[contacts.NAME]``, and what must hold of it.
Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from ..calendars.section import is_private_line
from ..errors import ConfigError, InvalidInput
from ..fields.section import PositiveS, Section
from ..net.ssrf import ANYWHERE, target_of
from ..subjects import check_part
from ..words.contacts import parsed

NAME_LENGTH_MAX: Final = 32
REFRESH_S_MIN: Final = 10.0


class ContactSource(Section, frozen=True, kw_only=True):
    """Whom a person knows, by a list here, a vCard file or a CardDAV collection.

    NAME is of `A-Z a-z 0-9 _ -`, up to 32.
    """

    user: str = "me"
    """Whose contacts they are."""
    people: tuple[str, ...] = ()
    """A list, each as `Ben Miller <ben@example.org>`."""
    file: str = ""
    """Instead: a vCard file; relative to the home."""
    url: str = ""
    """Instead: an address book on a CardDAV server: https://dav.example/ann/contacts/"""
    is_mine_alone: bool = False
    """Nobody but the person writes to it, nor do programs by themselves, so whom it has counts as
    known to them; false: it's only looked up, as content from outside. A list here is theirs."""
    login: str = ""
    """The user name on its server; empty: nobody logs in."""
    password: str = ""
    """For logging in."""
    password_file: str = ""
    """Instead: a file with it; relative to the home. Read at each log-in."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    refresh_s: Annotated[float, msgspec.Meta(ge=REFRESH_S_MIN)] = 300.0
    """How often to look; at least 10."""
    timeout_s: PositiveS = 30.0
    """For all of one look."""

    def __repr__(self) -> str:
        return f"ContactSource(user={self.user!r}, <address hidden>)"

    @property
    def is_theirs(self) -> bool:
        """Whether whom it has counts as known to the person, by what is configured."""
        return self.is_mine_alone or bool(self.people)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        host = urlsplit(self.url).hostname if self.url else ""
        return f"on {host}" if host else self.file or "in vigil.toml"


def check_contacts(sources: Mapping[str, ContactSource]) -> None:
    """Check what the types don't say of all of them. Raises: ConfigError."""
    for name, source in sources.items():
        check(name, source)


def check(name: str, source: ContactSource) -> None:
    """Check what the types don't say of a section ``[contacts.NAME]``.

    Raises:
        ConfigError: naming the section, the field and the reason.
    """
    try:
        if len(check_part("name", name)) > NAME_LENGTH_MAX:
            raise InvalidInput("name", f"may have at most {NAME_LENGTH_MAX} characters")
        check_part("user", source.user)
        given = [one for one in ("people", "file", "url") if getattr(source, one)]
        if len(given) != 1:
            raise InvalidInput("name", "has one of people, file and url, and only one")
        for entry in source.people:
            parsed(entry)
        if source.url:
            target_of(source.url, ANYWHERE)
            if urlsplit(source.url).fragment or not urlsplit(source.url).path.endswith("/"):
                raise InvalidInput("url", "of an address book must end with /")
        _check_login(source)
    except InvalidInput as error:
        raise ConfigError(f"[contacts.{name}]: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"[contacts.{name}]: {error}") from error


def _check_login(source: ContactSource) -> None:
    """Raises: InvalidInput."""
    if not (source.login or source.password or source.password_file):
        return
    if not source.url:
        raise InvalidInput("login", "goes with url only")
    if not source.login or ":" in source.login or not source.login.isprintable():
        raise InvalidInput("login", "must be a user name without colon and control characters")
    if bool(source.password) == bool(source.password_file):
        raise InvalidInput("password", "must be given once: set it, or password_file")
    if not is_private_line(source.url):
        raise InvalidInput("url", "must begin with https:// where a password is sent")
