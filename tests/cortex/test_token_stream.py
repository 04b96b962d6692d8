"""Tokens on their way to whoever watches, and what goes along for who comes later."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from services.cortex.thought import token_stream
from services.cortex.thought.token_stream import WHOLE_MAX, StreamedText, TokenStream


async def test_what_was_written_before_goes_along_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the first piece, and again after a while; not with each, and never very much of it."""
    sent = asyncio.Queue[StreamedText]()

    async def send(_: str, data: bytes) -> None:
        sent.put_nowait(msgspec.json.decode(data, type=StreamedText))

    stream = TokenStream(send, "live.vigil.ann.t1", 1, 0)

    async def passes(text: str) -> str | None:
        stream.add(text)
        return (await sent.get()).before

    assert [await passes("one"), await passes(" two")] == ["", None]
    monkeypatch.setattr(token_stream, "WHOLE_EVERY_S", 0.0)
    assert await passes("x" * WHOLE_MAX) == "one two"
    assert await passes(" last") is None
    stream.close()
