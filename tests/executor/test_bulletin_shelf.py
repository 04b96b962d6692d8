"""Texts of bulletins are stored once, and only in the place of what they were made of (C-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

from services.executor.board.bulletins import OVERTAKEN, BulletinShelf
from tests.support.goal_records import BULLETIN
from tests.support.stack import Stack
from vigil.board.kept import BULLETINS, KeptBoard
from vigil.clock import SystemClock
from vigil.contracts import Change, TellParent, TellParentPayload
from vigil.contracts.board import BulletinBasis, MadeText
from vigil.subjects import SessionKey

KEY: Final = SessionKey("ann", "vigil", "_bulletin-1f")
AT: Final = datetime(2026, 11, 20, 9, tzinfo=UTC)
BY: Final = Change(by="scheduler")


def effect(id_: str, made: MadeText) -> TellParent:
    payload = TellParentPayload(parent="", call_id="", state="done", content="", bulletin=made)
    return TellParent(id=id_ * 32, ordinal=1, payload=payload)


async def test_a_text_is_stored_once_and_never_over_a_newer_bulletin(bare: Stack) -> None:
    """A repeat after a crash finds it; what was forgotten meanwhile stays away."""
    context: Any = SimpleNamespace(bus=await bare.bus("executor"), clock=SystemClock())
    shelf, board = BulletinShelf(context), KeptBoard(await bare.bus("admin"), BULLETINS)
    listed = await board.replace(0, BULLETIN, BY, AT)
    basis = BulletinBasis(digest="d" * 64, revision=listed.number, read_at=AT, words_max=9)
    first = effect("a", MadeText(text="Ann sails.", basis=basis))
    for _ in range(2):
        assert first.payload.bulletin is not None
        assert await shelf.put(KEY, first, first.payload.bulletin) == ""
    second = effect("b", MadeText(text="Ann swims.", basis=basis))
    assert second.payload.bulletin is not None
    assert await shelf.put(KEY, second, second.payload.bulletin) == OVERTAKEN
    found = await board.find([KEY.scope], "current")
    assert found is not None
    assert (found.entity.text, found.entity.made_by, found.entity.made_at) == (
        "Ann sails.", "model", AT,
    )  # fmt: skip
    assert len(await board.history(found)) == 2
