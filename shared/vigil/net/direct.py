"""Requests of commands that go where they are sent, and to nowhere that an answer names: some have
keys in them."""

from __future__ import annotations

import urllib.request
from typing import Any


class _Direct(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def opener(*handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Return what opens addresses; a redirect is an `HTTPError`."""
    return urllib.request.build_opener(_Direct, *handlers)
