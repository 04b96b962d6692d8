"""Servers of mail, as sections of the configuration name them. Pure."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Final, Literal

import msgspec

from .. import distribution

Security = Literal["tls", "starttls", "none"]
PortNumber = Annotated[int, msgspec.Meta(ge=0, le=65535)]
_SMTP_PORTS: Final = {"tls": 465, "starttls": 587, "none": 25}
_IMAP_PORTS: Final = {"tls": 993, "starttls": 143, "none": 143}
LIBRARIES: Final = ("aiosmtplib", "imapclient")


def smtp_port(port: int, security: Security) -> int:
    """Return the port where mail is handed over; 0: the usual one.

    >>> smtp_port(0, "starttls"), smtp_port(2525, "tls")
    (587, 2525)
    """
    return port or _SMTP_PORTS[security]


def imap_port(port: int, security: Security) -> int:
    """Return the port where mail is read; 0: the usual one."""
    return port or _IMAP_PORTS[security]


def missing_libraries() -> str:
    """Return what is to be installed before mail can be used; empty: nothing."""
    missing = [one for one in LIBRARIES if importlib.util.find_spec(one) is None]
    return f"needs {', '.join(missing)}: {distribution.command_for()}" if missing else ""
