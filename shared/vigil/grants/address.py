"""URLs that a standing grant may cover.

A URL is compared in parts, as it is asked for: scheme, host and port as `vigil.net.ssrf` reads
them, and the path by its segments. Whatever two programs might read in two ways makes a URL one
that no grant covers: encoded slashes, dots, backslashes and percent signs, empty segments, `.` and
`..`, parameters of segments, fragments, users, and characters beyond printable ASCII.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from ..contracts.board.grant import Address
from ..errors import InvalidInput
from ..net.ssrf import ANYWHERE, Target, target_of

PATH_LENGTH_MAX: Final = 512
_AMBIGUOUS: Final = re.compile(r"%(?:2f|5c|2e|25|00|3b|0a|0d|(?![0-9a-f]{2}))", re.IGNORECASE)

_TWO_HOSTS: Final = frozenset("ßẞς\u200c\u200d")
"""Characters that became others in names of hosts (IDNA 2003), and don't by RFC 5894, 7.2."""


def parse(url: str) -> tuple[Target, str]:
    """Return where a URL leads, and its path.

    >>> target, path = parse("https://API.example.org/v1/items?page=2")
    >>> target.host, target.port, path
    ('api.example.org', 443, '/v1/items')

    Raises:
        InvalidInput: it's none, or could be read in two ways.
    """
    target = target_of(url, ANYWHERE)
    if "#" in url:
        raise InvalidInput("url", "has a fragment")
    return target, check_path(urlsplit(url).path or "/")


def check_path(path: str) -> str:
    """Return a path that can be read in one way only. Raises: InvalidInput."""
    if not path.startswith("/"):
        raise InvalidInput("path", "must begin with /")
    if len(path) > PATH_LENGTH_MAX:
        raise InvalidInput("path", f"must have at most {PATH_LENGTH_MAX} characters")
    if not path.isascii() or not path.isprintable() or set(" \\;?#*") & set(path):
        raise InvalidInput("path", "has a character that no grant covers")
    if _AMBIGUOUS.search(path):
        raise InvalidInput("path", "has an encoded character that could be read in two ways")
    *inner, _last = path.split("/")[1:]
    if "" in inner or {".", ".."} & set(path.split("/")):
        raise InvalidInput("path", "has an empty segment, '.' or '..'")
    return path


def obstacle(rule: Address, url: object) -> str | None:
    """Return why a URL isn't what the rule allows; None: it is."""
    if not isinstance(url, str):
        return f"{rule.field} is no text"
    try:
        target, path = parse(url)
    except InvalidInput as error:
        return f"the URL {error.reason}"
    if (target.scheme, target.host, target.port) != (rule.scheme, rule.host, rule.port):
        return "it leads to another place"
    if path != rule.path and not path.startswith(f"{rule.path.removesuffix('/')}/"):
        return "it has another path"
    return None


def check(rule: Address) -> Address:
    """Return a rule that may be granted. Raises: InvalidInput, field and reason."""
    if not 0 < rule.port < 65536:
        raise InvalidInput("port", "must be 1..65535")
    if "*" in rule.host or "?" in rule.host:
        raise InvalidInput("host", "must be one host; there are no patterns")
    if host_of(rule.host) != rule.host:
        raise InvalidInput("host", f"must be written as {host_of(rule.host)!r}")
    check_path(rule.path)
    return rule


def host_of(host: str) -> str:
    """Return a host's name as it is looked up. Raises: InvalidInput.

    >>> host_of("Bücher.example.")
    'xn--bcher-kva.example'
    """
    if not _TWO_HOSTS.isdisjoint(host):
        reason = f"{host[:64]!r} is one host to some programs and another to others: write xn--…"
        raise InvalidInput("host", reason)
    try:
        name = host.encode("idna").decode().lower()
        shown = f"[{name}]" if ":" in name else name
        found = target_of(f"https://{shown}/", ANYWHERE).host
    except (UnicodeError, InvalidInput) as error:
        raise InvalidInput("host", f"{host[:64]!r} is not a host name") from error
    if found not in (name, name.removesuffix(".")):
        raise InvalidInput("host", f"{host[:64]!r} is not a host name")
    return found
