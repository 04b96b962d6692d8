"""The HTTP client for addresses that others name: every request is judged, none is remembered.

Where it may go is :mod:`vigil.net.ssrf`, held to by :mod:`vigil.net.guard`. Redirects are not
followed, nothing of the environment counts, and what goes wrong is put into words that hold no URL
and no header, because either may hold a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from .. import __version__
from ..texts.trouble import known_reason

USER_AGENT: Final = f"Vigil/{__version__}"
FAILURES: Final = (httpx2.HTTPError, httpx2.InvalidURL, OSError)
"""What a request ends with that got no answer, beside `Refused`."""


def guarded_client(
    guard: httpx2.AsyncBaseTransport,
    *,
    timeout: float | httpx2.Timeout,
    headers: Mapping[str, str] | None = None,
    keeps_cookies: bool = False,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """Make a client that reaches what its guard allows.

    Args:
        guard: a `GuardedTransport`, or what sends on by one.
        timeout: in seconds.
        headers: of each request, beside who we are; no packing is asked for.
        keeps_cookies: False: each request is as if it were the first ever.
        auth: lets each request in.
    """
    # Below a warning the library logs whole URLs, and what was put into them.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        transport=guard,
        headers={"user-agent": USER_AGENT, "accept-encoding": "identity", **(headers or {})},
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        auth=auth,
        cookies=None if keeps_cookies else CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )


def why_failed(error: BaseException) -> str:
    """Say what went wrong with a request without saying where.

    >>> why_failed(httpx2.InvalidURL("https://u:secret@x"))
    'InvalidURL'
    """
    if reason := known_reason(error):
        return reason
    kind = type(error).__name__
    said = isinstance(error, httpx2.ConnectError | httpx2.RemoteProtocolError) and str(error)
    return f"{kind}: {error}" if said else kind
