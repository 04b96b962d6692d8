"""What a browser needs to keep the console as an app: a manifest, a service worker, and a page for
when the gateway can't be reached. Nobody has to be signed in for them, and nothing of anybody is in
them."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec
from fastapi import Request, Response

from ..http.browser import PATH
from . import look

MANIFEST: Final = f"{PATH}/manifest.webmanifest"
WORKER: Final = f"{PATH}/worker.js"
AWAY: Final = f"{PATH}/away"
_FRESH: Final = {"cache-control": "no-cache"}
_SHORTCUTS: Final = (("Talk", "/conversations"), ("Inbox", "/inbox"), ("Tasks", "/tasks"))


def _manifest() -> bytes:
    icons = [
        {"src": look.address_of("icon-192.png"), "sizes": "192x192", "type": "image/png"},
        {"src": look.address_of("icon-512.png"), "sizes": "512x512", "type": "image/png"},
        {
            "src": look.address_of("icon-whole.png"),
            "sizes": "512x512",
            "type": "image/png",
            "purpose": "maskable",
        },
    ]
    return msgspec.json.encode(
        {
            "id": PATH,
            "name": "Vigil",
            "short_name": "Vigil",
            "description": "Agents that act on their own, and what they need of you",
            "start_url": PATH,
            "scope": PATH,
            "display": "standalone",
            "background_color": "#f6f6f3",
            "theme_color": "#2a4fb5",
            "icons": icons,
            "shortcuts": [{"name": name, "url": PATH + path} for name, path in _SHORTCUTS],
        }
    )


async def manifest(_: Request) -> Response:
    """Answer with the manifest."""
    return Response(_manifest(), headers=_FRESH, media_type="application/manifest+json")


async def worker(_: Request) -> Response:
    """Answer with the service worker; one of another version begins with a cache of its own."""
    source = look.source_of("worker.js")
    version = hashlib.sha256(source + look.source_of("console.css")).hexdigest()[:16]
    made = source.replace(b"HASH", version.encode())
    made = made.replace(b"ADDRESS_OF_ICON", look.address_of("icon-192.png").encode())
    headers = _FRESH | {"service-worker-allowed": PATH}
    return Response(made, headers=headers, media_type="text/javascript")


async def away(_: Request) -> Response:
    """Answer with the page that a browser keeps."""
    answer = look.html("away.html", {})
    answer.headers["cache-control"] = "no-cache"
    return answer
