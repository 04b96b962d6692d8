"""Headers that the configuration has for hosts of the person's (``[sites.NAME]``).

They are sent to exactly that host, over https, at the port of https; and only while a call has led
nowhere else: what another site redirects to is that site's choice, and the credentials aren't lent
to it. A reader never sends any: it may go anywhere without asking because it holds nothing private,
and what these open is private. What comes back is shown without their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from vigil.errors import ConfigError, InvalidInput
from vigil.net.ssrf import Target
from vigil.settings.sites import Site, check_headers

from .pairs import read

READER: Final = "reader"
HIDDEN: Final = "[hidden]"
TOKEN_LENGTH_MIN: Final = 8
"""A shorter last word of a value is none that could be guessed from."""


def _secrets(values: Iterable[str]) -> Iterable[str]:
    """Yield each value, and of ``Bearer TOKEN`` the token."""
    for value in values:
        yield value
        last = value.rpartition(" ")[2]
        if len(last) >= TOKEN_LENGTH_MIN:
            yield last


class SiteHeaders:
    """The headers of each host.

    Args:
        headers: host -> name -> value.
    """

    def __init__(self, headers: Mapping[str, Mapping[str, str]]) -> None:
        self.headers = headers
        values = (value for pairs in headers.values() for value in pairs.values())
        self._secrets = sorted(set(_secrets(values)), key=len, reverse=True)

    def way(self, kind: str) -> Way:
        """Begin the way of one call of a session of this kind."""
        return Way({} if kind == READER else self.headers)

    def hidden(self, text: str) -> str:
        """Return a text without the values: a server may tell what it was sent."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class Way:
    """Where one call has led so far."""

    def __init__(self, headers: Mapping[str, Mapping[str, str]]) -> None:
        self._headers = headers
        self._first: Target | None = None

    def headers_to(self, target: Target) -> Mapping[str, str]:
        """Return what to send there, next on its way."""
        self._first = self._first or target
        if target != self._first or (target.scheme, target.port) != ("https", 443):
            self._headers = {}
        return self._headers.get(target.host, {})


NO_SITES: Final = SiteHeaders({})


def headers_of(sites: Mapping[str, Site], home: Path) -> SiteHeaders:
    """Read the headers of all sites. Raises: ConfigError, naming the section."""
    return SiteHeaders({site.host: _of(name, site, home) for name, site in sites.items()})


def _of(name: str, site: Site, home: Path) -> dict[str, str]:
    field = f"sites.{name}.headers_file"
    found = read(field, home, site.headers_file, ":")
    try:
        check_headers(field, found)
    except InvalidInput as error:
        raise ConfigError(str(error)) from error
    return site.headers | found
