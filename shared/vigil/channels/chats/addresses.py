"""Where a network's interface is reached, as the configuration says it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ...errors import InvalidInput

_ADDRESS: Final = re.compile("[!-~]{1,4000}")
"""Nothing in it that would have to be written otherwise on the way."""
_SOCKETS: Final = {"https": ("wss",), "http": ("ws", "wss")}


def check_api_url(url: str, ports_never: Collection[int] = ()) -> None:
    """Check where a network is reached. Raises: InvalidInput."""
    try:
        parts = urlsplit(url)
        port = parts.port or 0
    except ValueError as error:
        raise InvalidInput("api_url", f"is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise InvalidInput("api_url", "must begin with https://, and name a host")
    if port in ports_never:
        raise InvalidInput("api_url", "is the broker's port")


def is_socket_of(url: str, api_url: str, domains: Collection[str] = ()) -> bool:
    """Return whether a socket that a network's answer names is the network's: what is private goes
    where the configuration says, and to nowhere else (S9).

    Args:
        url: which the answer names.
        domains: of the network, beside the host of `api_url` and what is below it.

    >>> api = "https://slack.com/api"
    >>> is_socket_of("wss://wss-primary.slack.com/link", api)
    True
    >>> [is_socket_of(one, api) for one in ("wss://slack.com.example/", "ws://slack.com/", "wss://")]
    [False, False, False]
    """
    try:
        asked, own = urlsplit(url), urlsplit(api_url)
        _ = asked.port
    except ValueError:
        return False
    return asked.scheme in _SOCKETS.get(own.scheme, ()) and _is_below(
        asked, (own.hostname or "", *domains)
    )


def is_file_of(url: str, api_url: str, domains: Collection[str] = ()) -> bool:
    """Return whether a file that a network's answer names is with the network: a token may go
    there, and what comes from there is what a person sent.

    Args:
        url: which the answer names.
        domains: of the network, beside the host of `api_url` and what is below it.

    >>> api = "https://slack.com/api"
    >>> is_file_of("https://files.slack.com/files-pri/T1-F1/a.png", api)
    True
    >>> [is_file_of(one, api) for one in (
    ...     "https://files.slack.com.example/", "http://files.slack.com/", "https://me@slack.com/",
    ...     "https://files.slack.com:22/", "https://169.254.169.254/")]
    [False, False, False, False, False]
    """
    if not _ADDRESS.fullmatch(url):
        return False
    try:
        asked, own = urlsplit(url), urlsplit(api_url)
        is_own = (asked.scheme, asked.netloc) == (own.scheme, own.netloc)
        is_usual = asked.scheme == "https" and asked.port in (None, 443)
    except ValueError:
        return False
    return is_own or (is_usual and _is_below(asked, (own.hostname or "", *domains)))


def _is_below(asked: SplitResult, hosts: Collection[str]) -> bool:
    host = asked.hostname or ""
    has_user = "@" in asked.netloc
    return not has_user and any(
        host == one or (host.endswith(f".{one}") and not one.replace(".", "").isdigit())
        for one in hosts
        if one
    )
