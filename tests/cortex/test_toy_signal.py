"""A new kind of signal is one row: what it means, and the function that tells it (SPEC C-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import pytest

from services.cortex.signals import SignalProjector
from services.gateway.documents import bus as asyncapi
from services.gateway.state.selection import select
from tests.support import signals
from tests.support.stack import Stack
from vigil.contracts import Said, encode
from vigil.errors import InvalidInput
from vigil.signals.draft import Signals
from vigil.signals.kinds import KINDS, Giver, Kind, check_kind
from vigil.signals.sources import givers_of
from vigil.subjects import Scope, SessionKey

KEY: Final = SessionKey("ann", "vigil", "t1")
AT: Final = datetime.now(UTC)


def whispered(made: Signals, said: Said) -> None:
    """Tell a message that is short."""
    if len(said.text) < 10:
        text = "The agent whispered"
        made.add("toy.whispered", said.at, text, caused_by=None, subject=said.id, length=3)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The row."""
    row = Kind("the agent spoke softly", (Giver("SESSIONS", Said, whispered),))
    monkeypatch.setitem(KINDS, "toy.whispered", row)
    givers_of.cache_clear()
    yield
    givers_of.cache_clear()


@pytest.mark.usefixtures("toy")
async def test_a_row_is_told_by_the_projector(bare: Stack) -> None:
    admin = await bare.bus("admin")
    for number, text in enumerate(("tea", "a long speech about tea")):
        id_ = str(number) * 32
        said = Said(id=id_, session_key=str(KEY), text=text, at=AT, caused_by="e1", turn_seq=1)
        await admin.publish(KEY.out_said(id_), encode(said))
    running = asyncio.create_task(SignalProjector(await signals.context_of(bare, "cortex")).run())
    try:
        made = await signals.settled(admin)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [one.kind for one in made] == ["message.sent", "toy.whispered", "message.sent"]
    whisper = made[1]
    assert (whisper.id, whisper.text, whisper.data) == (
        "SESSIONS-1-toy.whispered", "The agent whispered", {"length": 3},
    )  # fmt: skip
    assert signals.wrong(await signals.expected(admin), made) == []


@pytest.mark.usefixtures("toy")
def test_readers_and_documents_follow_the_row() -> None:
    """C-4, P-7: what may be asked for, and what /asyncapi.json lists."""
    assert check_kind("toy.whispered")
    assert check_kind("toy.*")
    assert select(whose=(Scope("*", "ann"),), agent=None, kind="toy.*", session=None)
    parameters = asyncapi.document("1")["components"]["parameters"]
    assert "toy" in parameters["about"]["enum"]
    assert "whispered" in parameters["happening"]["enum"]


def test_without_the_row_there_is_none() -> None:
    with pytest.raises(InvalidInput, match=r"is no kind of signal"):
        check_kind("toy.whispered")
