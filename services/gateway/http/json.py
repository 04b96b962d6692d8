"""Answers as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import Response


class Json(Response):
    """A struct as JSON. Answers are a person's own data: no cache may keep them."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200) -> None:
        super().__init__(content, status_code, headers={"cache-control": "no-store"})

    def render(self, content: Any) -> bytes:
        return msgspec.json.encode(content)
