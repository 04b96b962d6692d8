"""How a host with its port is written: ``HOST``, ``HOST:PORT``, and with IPv6. Pure.

An IPv6 address has colons of its own, so with a port it stands in brackets (RFC 3986, 3.2.2).
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from ..errors import InvalidInput

_FORM = re.compile(
    r"(?:\[(?P<v6>[^\[\]\s]+)\]|(?P<host>[^\[\]:\s/@]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)


def read_endpoint(text: str, field: str = "host") -> tuple[str, int]:
    """Return host and port; port 0: none is named.

    >>> read_endpoint("mail.a.example:993"), read_endpoint("[::1]:993"), read_endpoint("fd00::1")
    (('mail.a.example', 993), ('::1', 993), ('fd00::1', 0))

    Raises:
        InvalidInput: it has another form.
    """
    if _is_ipv6(text):
        return text, 0
    found = _FORM.fullmatch(text)
    port = int(found["port"] or 0) if found else 0
    is_port = found is not None and (not found["port"] or 1 <= port <= 65535)
    if found is None or not is_port or (found["v6"] and not _is_ipv6(found["v6"])):
        raise InvalidInput(field, f"{text!r} is not HOST or HOST:PORT (IPv6: [::1]:PORT)")
    return found["v6"] or found["host"], port


def shown_endpoint(host: str, port: int) -> str:
    """Return how both are written together.

    >>> shown_endpoint("::1", 993), shown_endpoint("a.example", 25)
    ('[::1]:993', 'a.example:25')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
