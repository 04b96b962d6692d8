"""What the console decides without I/O: whose form it is, what a browser may do with a page. Pure.

A cookie comes along with every request to the gateway's host, also with those that another page
makes. So what changes something has to come from a page of ours, and no page but ours may show,
embed or read one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

PATH: Final = "/console"
COOKIE: Final = "vigil_console"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'{nonce}; style-src 'self'; img-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types {makers}"
)
HEADERS: Final[Mapping[str, str]] = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # With "no-referrer" a browser sends the Origin "null" with a form.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer below `PATH`."""
SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
"""The form of a code and of a cookie's value: 256 random bits."""
_BROWSERS: Final = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_SYSTEMS: Final = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
_NAMES: Final = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}


def policy_of(nonce: str = "") -> str:
    """Return the content security policy of a page: nothing runs but files of ours.

    Args:
        nonce: of a page with scripts. Only elements that carry it are htmx's to act on, and nothing
            but htmx makes markup out of text, of pages of ours; our script names the worker.

    >>> policy_of().endswith("trusted-types 'none'"), "'nonce-x'" in policy_of("x")
    (True, True)
    """
    if not nonce:
        return _POLICY.format(nonce="", makers="'none'")
    return _POLICY.format(nonce=f" 'nonce-{nonce}'", makers="htmx vigil")


def change_of(chunk: bytes) -> bytes:
    r"""Return what a page is told of a piece of the stream of signals: that something changed.

    >>> change_of(b"id: 7\nevent: message.sent\ndata: {}\n\nid: 8\ndata: {}\n\n")
    b'id: 8\nevent: changed\ndata: 1\n\n'
    >>> change_of(b":\n\n")
    b':\n\n'
    """
    lines = chunk.splitlines()
    if not any(line.startswith(b"data:") for line in lines):
        return chunk
    ids = [line for line in lines if line.startswith(b"id:")]
    return b"\n".join([*ids[-1:], b"event: changed", b"data: 1", b"", b""])


def is_of_console(path: str) -> bool:
    """Return whether a path is the console's.

    >>> is_of_console("/console"), is_of_console("/console/inbox"), is_of_console("/consoles")
    (True, True, False)
    """
    return path == PATH or path.startswith(f"{PATH}/")


def is_own_form(method: str, heads: Mapping[str, str]) -> bool:
    """Return whether a request comes from a page of ours, or only looks at one.

    Browsers say where a request comes from in `Sec-Fetch-Site`, over HTTPS and on the machine
    itself; elsewhere the `Origin` of a form has to be the host that it is sent to, port included.

    >>> is_own_form("POST", {"sec-fetch-site": "same-origin"})
    True
    >>> is_own_form("POST", {"sec-fetch-site": "same-site", "origin": "http://localhost:3000"})
    False
    >>> is_own_form("POST", {"origin": "http://localhost:3000", "host": "localhost:8420"})
    False
    >>> is_own_form("POST", {"origin": "http://localhost:8420", "host": "localhost:8420"})
    True
    >>> is_own_form("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"})
    False
    """
    site = heads.get("sec-fetch-site", "")
    if method in ("GET", "HEAD"):
        # A link from elsewhere may lead here: it comes without the cookie.
        is_link = heads.get("sec-fetch-dest") == "document"
        return is_link or site in ("", "none", "same-origin")
    if site:
        return site == "same-origin"
    origin, host = heads.get("origin", ""), heads.get("host", "")
    return bool(host) and origin.partition("://")[2].lower() == host.lower()


def secret_of(cookies: Iterable[str]) -> str | None:
    """Return what our cookie holds; None if it has another form, or comes twice.

    >>> secret_of(["a=1; vigil_console=" + 43 * "x"]) == 43 * "x"
    True
    >>> secret_of(["vigil_console=short"])
    """
    pairs = [one.strip().partition("=") for header in cookies for one in header.split(";")]
    found = [value for name, _, value in pairs if name == COOKIE]
    return found[0] if len(found) == 1 and SECRET.fullmatch(found[0]) else None


def cookie_of(secret: str, life_s: int, home: str, *, is_secure: bool) -> str:
    """Return the header that sets our cookie; with an empty `secret`, that removes it.

    Args:
        home: the path of the console, as browsers have it.
    """
    about = f"Path={home}; HttpOnly; SameSite=Strict; Max-Age={life_s if secret else 0}"
    return f"{COOKIE}={secret}; {about}" + "; Secure" * is_secure


def is_secure(scheme: str, origin: str) -> bool:
    """Return whether the browser came by HTTPS, also through a proxy that ends it."""
    return scheme == "https" or origin.lower().startswith("https://")


def browser_of(agent: str) -> str:
    """Return what to call a browser by its `User-Agent`, in our words.

    >>> browser_of("Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0")
    'Firefox on Linux'
    >>> browser_of("")
    'a browser'
    """
    browser, system = (
        next((one for one in names if one in agent), None) for names in (_BROWSERS, _SYSTEMS)
    )
    what = _NAMES.get(browser or "", browser) or "a browser"
    return what if system is None else f"{what} on {_NAMES.get(system, system)}"
