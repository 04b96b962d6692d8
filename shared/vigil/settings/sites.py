"""Hosts that `http_get` knows: a section ``[sites.NAME]``, and what must hold of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ..errors import ConfigError, InvalidInput
from ..fields.section import Section
from ..grants import address


class Site(Section, frozen=True, kw_only=True):
    """What `http_get` sends to a host of yours, and which of its pages need no leave."""

    host: str
    """Exactly this one, over https."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers to send."""
    headers_file: str = ""
    """The same, one `Name: value` a line; relative to the home."""
    urls: tuple[str, ...] = ()
    """Fetching exactly these URLs is of class `read`."""

    def __repr__(self) -> str:
        return f"Site(host={self.host!r}, <headers hidden>)"


_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[!-~]([ -~]*[!-~])?")
_CONNECTION: Final = ("connection", "content-length", "host", "te", "trailer", "transfer-encoding")
OURS: Final = frozenset((*_CONNECTION, "accept", "accept-encoding", "upgrade", "user-agent"))
"""Headers that say how a request is made; who makes it says that."""


def check(place: str, site: Site) -> None:
    """Check a section.

    Args:
        place: its name, for the error.

    Raises:
        ConfigError: naming the field and the reason. No header's value is quoted.
    """
    try:
        host = address.host_of(site.host)
        if host != site.host:
            raise InvalidInput("host", f"must be written as {host!r}")
        check_headers("headers", site.headers)
        for url in site.urls:
            _check_url(url, site)
    except InvalidInput as error:
        raise ConfigError(f"[{place}]: {error}") from error


def repeated(sites: Mapping[str, Site]) -> list[str]:
    """List the hosts that more than one section is about."""
    hosts = [site.host for site in sites.values()]
    return [
        f"[sites.NAME]: {host} has more than one section"
        for host in sorted(set(hosts))
        if hosts.count(host) > 1
    ]


def check_headers(field: str, headers: Mapping[str, str]) -> None:
    """Check headers. Raises: InvalidInput; no value is quoted."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(field, "has a name that no header can have")
        if name.lower() in OURS:
            raise InvalidInput(field, f"{name} can't be set")
        if not _VALUE.fullmatch(value):
            raise InvalidInput(field, f"the value of {name} must be printable ASCII, not blank")


def _check_url(url: str, site: Site) -> None:
    try:
        target, _path = address.parse(url)
    except InvalidInput as error:
        raise InvalidInput("urls", f"{url[:100]!r} {error.reason}") from error
    if target.host != site.host:
        raise InvalidInput("urls", f"{url[:100]!r} is not of {site.host}")
