"""Tokens of answers in the making, for those who come and go while others follow them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from services.gateway.state.live import Live, WholeTokens, token_frame
from tests.support.stack import Stack
from tests.support.talk import PATIENCE_S
from vigil.subjects import SessionKey


async def test_who_goes_and_comes_back_gets_each_token_once(bare: Stack) -> None:
    """Whoever left was still served, as whoever came next, and got each token twice; cancelled as
    they left, for good."""
    key = SessionKey("ann", "vigil", "t1")
    live = Live(await bare.bus("gateway"), lambda one: one.live, token_frame)
    admin = await bare.bus("admin")
    found: list[str] = []

    def take(frame: str) -> None:
        found.append(msgspec.json.decode(frame)["text"])

    leaving: list[asyncio.Task[None]] = []
    for steps in range(8):
        await live.join(key, take)
        leaving.append(asyncio.create_task(live.leave(key, take)))
        for _ in range(steps):
            await asyncio.sleep(0)
        leaving[-1].cancel()
    await live.join(key, take)
    for text in ("one", "two", "last"):
        token = {"turn": 1, "attempt": 0, "text": text}
        await admin.send(key.live, msgspec.json.encode(token))
    async with asyncio.timeout(PATIENCE_S):
        while "last" not in found:
            await asyncio.sleep(0.01)
    assert found == ["one", "two", "last"]
    for one in leaving:
        with contextlib.suppress(asyncio.CancelledError):
            await one
    await live.leave(key, take)
    assert live.sessions == 0


def test_who_comes_later_has_an_answer_from_its_beginning_on() -> None:
    """Nothing of one whose beginning isn't told yet, then all of it at once; no piece twice, and
    as it comes from a cortex of an older version."""

    def piece(attempt: int, text: str, **more: Any) -> bytes:
        return msgspec.json.encode({"turn": 2, "attempt": attempt, "text": text} | more)

    later, first = WholeTokens(), WholeTokens()
    pieces = (
        (first, piece(0, "One", before="")),
        (first, piece(0, " two", before=None)),
        (later, piece(0, " two", before=None)),
        (first, piece(0, " three", before="One two")),
        (later, piece(0, " three", before="One two")),
        (later, piece(0, " four", before=None)),
        (later, piece(1, "Anew", before="")),
        (later, piece(2, "Old")),
    )
    told = [(who.frame(data), who is later) for who, data in pieces]
    texts = [(frame and msgspec.json.decode(frame)["text"], is_later) for frame, is_later in told]
    assert texts == [
        ("One", False), (" two", False), (None, True), (" three", False),
        ("One two three", True), (" four", True), ("Anew", True), ("Old", True),
    ]  # fmt: skip
