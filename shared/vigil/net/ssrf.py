"""Where a request of ours may go: URLs and addresses, judged. Pure.

A URL that a person, a model or a receiver chose must not reach what only this machine can
reach: the broker, a neighbour, the address where a cloud hands out credentials. So names are
looked up once, EVERY address is judged here, and the caller connects to exactly one of those
that passed: a second lookup could answer something else (RELIABILITY S9).

What may be reached is an allow-list. Addresses that carry another one inside (IPv4-mapped,
NAT64, 6to4, Teredo) never pass, whatever they carry: no receiver needs them, and each is a way
around a rule. This module looks nothing up and opens no connection.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from ..errors import InvalidInput

URL_LENGTH_MAX: Final = 2048
WEB_PORTS: Final = (80, 443)
_PORTS: Final = {"http": 80, "https": 443}
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PRIVATE_NAMES: Final = ("localhost", "local", "internal", "home.arpa", "localdomain")
"""Names that never lead to the public internet; not worth asking a resolver for."""

Reach = Literal["public", "private", "never"]
Address = IPv4Address | IPv6Address


class RequestRefused(InvalidInput):
    """A request must not go there. Trying again changes nothing."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a URL leads, in the form in which it is looked up and connected to."""

    scheme: str
    host: str
    """In lower case, without a final dot or brackets."""
    port: int

    @property
    def address(self) -> Address | None:
        """The address, if the URL names one instead of a host."""
        return _address_of(self.host)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller may reach."""

    ports: Collection[int] = WEB_PORTS
    ports_never: Collection[int] = ()
    """The broker's, say: refused on any address, however much else is allowed."""
    allow_private: bool = False
    """Loopback and private networks, too: for receivers of one's own."""


ANYWHERE: Final = Rules(ports=range(1, 65536), allow_private=True)
"""For the form of a URL alone: which addresses may be reached is decided where they are connected
to, or is its owner's own choice."""


# ---------------------------------------------------------------- URLs


def target_of(url: str, rules: Rules) -> Target:
    """Return where `url` leads, if its form lets it be asked at all.

    >>> target_of("https://Hooks.Example./in", Rules())
    Target(scheme='https', host='hooks.example', port=443)

    Raises:
        RequestRefused: it's no http or https URL, has a name and password, a port that isn't
            allowed, or a host that is private by its name or address.
    """
    if len(url) > URL_LENGTH_MAX:
        raise RequestRefused(
            "url", f"must have at most {URL_LENGTH_MAX} characters, has {len(url)}"
        )
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise RequestRefused(
            "url", "may have only printable ASCII characters, no spaces or backslashes"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise RequestRefused("url", f"is not a URL: {error}") from error
    return judge(_scheme(parts), _host(parts), port, rules)


def rules_to(url: str, ports_never: Collection[int]) -> Rules:
    """Return what may be reached by whoever asks one endpoint of its owner's: the port of `url`.

    Raises: RequestRefused, the form of `url` lets nothing be asked.
    """
    port = target_of(url, ANYWHERE).port
    return Rules(ports=(port,), ports_never=ports_never, allow_private=True)


def _scheme(parts: SplitResult) -> str:
    if parts.scheme not in _PORTS:
        raise RequestRefused(
            "url", f"must begin with http:// or https://, not {parts.scheme[:16]!r}"
        )
    return parts.scheme


def _host(parts: SplitResult) -> str:
    if "@" in parts.netloc:
        raise RequestRefused("url", "must not contain a user name or password")
    return parts.hostname or ""


def judge(scheme: str, host: str, port: int | None, rules: Rules) -> Target:
    """Judge a URL that somebody took apart already; `port` None is the scheme's.

    Raises:
        RequestRefused: as :func:`target_of`.
    """
    if scheme not in _PORTS:
        raise RequestRefused("url", f"must begin with http:// or https://, not {scheme[:16]!r}")
    found = _PORTS[scheme] if port is None else port
    if found in rules.ports_never or found not in rules.ports:
        raise RequestRefused("url", f"port {found} is not allowed")
    target = Target(scheme=scheme, host=_checked_host(host, rules), port=found)
    if target.address is not None:
        judge_addresses([target.host], rules)
    return target


def _checked_host(host: str, rules: Rules) -> str:
    name = host.lower().removesuffix(".")
    if _address_of(name) is not None:
        return name
    labels = name.split(".")
    # "127.1", "0x7f000001" and "2130706433" are addresses to some resolvers and names to others.
    if _NUMBER.fullmatch(labels[-1]):
        raise RequestRefused("url", f"{host[:64]!r} is neither a host name nor an address")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise RequestRefused("url", f"{host[:64]!r} is not a host name")
    if not rules.allow_private and any(
        name == private or name.endswith(f".{private}") for private in _PRIVATE_NAMES
    ):
        raise RequestRefused("url", f"{host[:64]!r} is a private name")
    return name


def _address_of(text: str) -> Address | None:
    try:
        return ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


# ---------------------------------------------------------------- addresses


_V4_PRIVATE: Final = tuple(
    map(
        IPv4Network,
        ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    )
)
_V4_NEVER: Final = tuple(
    map(IPv4Network, (
        "0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
        "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    ))
)  # fmt: skip
_CLOUD: Final = frozenset(
    ip_address(text).packed
    for text in ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254")
)
"""Where clouds hand out credentials outside of link-local: Alibaba, Azure, AWS, Google."""
_V6_PRIVATE: Final = tuple(map(IPv6Network, ("::1/128", "fc00::/7")))
_V6_PUBLIC: Final = IPv6Network("2000::/3")
_V6_NEVER: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)
"""Inside of what is public: protocol assignments with Teredo, documentation, 6to4, AS112."""


def reach_of(address: Address) -> Reach:
    """Tell whether an address is on the public internet, private, or never to be connected to.

    Link-local counts as never, because cloud providers hand out credentials there; so do the
    addresses outside of it where some do.

    >>> [reach_of(ip_address(a)) for a in ("93.184.215.14", "10.1.2.3", "169.254.169.254")]
    ['public', 'private', 'never']
    >>> reach_of(ip_address("::ffff:93.184.215.14"))
    'never'

    Source: the IANA registries of special-purpose addresses (RFC 6890).
    """
    if address.packed in _CLOUD:  # whatever scope it names
        return "never"
    if isinstance(address, IPv4Address):
        if any(address in network for network in _V4_NEVER):
            return "never"
        return "private" if any(address in network for network in _V4_PRIVATE) else "public"
    if any(address in network for network in _V6_PRIVATE):
        return "private"
    is_public = address in _V6_PUBLIC and not any(address in net for net in _V6_NEVER)
    return "public" if is_public else "never"


def judge_addresses(addresses: Iterable[str], rules: Rules) -> list[str]:
    """Return what a host was resolved to, if every address of it may be connected to.

    One forbidden address refuses the host: whoever mixes them means no good.

    Raises:
        RequestRefused: naming the first address that may not be reached, or there is none.
    """
    found = list(dict.fromkeys(addresses))
    if not found:
        raise RequestRefused("url", "the host has no address")
    for text in found:
        address = _address_of(text)
        if address is None:
            raise RequestRefused("url", f"{text[:64]!r} is not an address")
        reach = reach_of(address)
        if reach == "never" or (reach == "private" and not rules.allow_private):
            raise RequestRefused("url", f"leads to {address}, which is not a public address")
    return [text.removeprefix("[").removesuffix("]") for text in found]
