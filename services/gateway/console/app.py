"""What a browser needs to keep the console as an app: a manifest, a service worker, and a page for
when the gateway can't be reached. Nobody has to be signed in for them, and nothing of anybody is in
them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec
from fastapi import Response

from . import appearance

_FRESH: Final = {"cache-control": "no-cache"}
_SHORTCUTS: Final = (("Talk", "/conversations"), ("Inbox", "/inbox"), ("Tasks", "/tasks"))


def _manifest(console: str) -> bytes:
    icons = [
        {
            "src": appearance.address_of(console, "icon-192.png"),
            "sizes": "192x192",
            "type": "image/png",
        },
        {
            "src": appearance.address_of(console, "icon-512.png"),
            "sizes": "512x512",
            "type": "image/png",
        },
        {
            "src": appearance.address_of(console, "icon-whole.png"),
            "sizes": "512x512",
            "type": "image/png",
            "purpose": "maskable",
        },
    ]
    return msgspec.json.encode(
        {
            "id": console,
            "name": "Vigil",
            "short_name": "Vigil",
            "description": "Agents that act on their own, and what they need of you",
            "start_url": console,
            "scope": console,
            "display": "standalone",
            "background_color": "#f6f6f3",
            "theme_color": "#2a4fb5",
            "icons": icons,
            "shortcuts": [{"name": name, "url": console + path} for name, path in _SHORTCUTS],
        }
    )


def manifest(console: str) -> Response:
    """Answer with the manifest of the console at that path."""
    return Response(_manifest(console), headers=_FRESH, media_type="application/manifest+json")


def worker(console: str) -> Response:
    """Answer with the service worker; one of another version begins with a cache of its own."""
    source = appearance.source_of("worker.js")
    version = hashlib.sha256(source + appearance.source_of("console.css")).hexdigest()[:16]
    made = source.replace(b"HASH", version.encode()).replace(b"PATH_OF_CONSOLE", console.encode())
    made = made.replace(b"ADDRESS_OF_ICON", appearance.address_of(console, "icon-192.png").encode())
    headers = _FRESH | {"service-worker-allowed": console}
    return Response(made, headers=headers, media_type="text/javascript")


def away(console: str) -> Response:
    """Answer with the page that a browser keeps."""
    answer = appearance.html(console, "away.html", {})
    answer.headers["cache-control"] = "no-cache"
    return answer


FILES: Final[tuple[tuple[str, Callable[[str], Response]], ...]] = (
    ("/manifest.webmanifest", manifest),
    ("/worker.js", worker),
    ("/away", away),
)
"""Where they are, below the console's path."""
