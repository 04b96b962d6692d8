"""What somebody may try in a chat network: the same in each (`tests/support/attacks_in_rooms.py`).

Telegram is attacked in `test_telegram_both_ways.py`: its library takes seconds to be imported.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.attacks_in_rooms import DiscordRooms, MatrixRooms, Rooms, SlackRooms, attack
from tests.support.stack import Stack
from vigil.channels.chats import follower
from vigil.channels.matrix import listener


@pytest.mark.repeated
@pytest.mark.parametrize("rooms", [SlackRooms, DiscordRooms, MatrixRooms])
async def test_who_is_paired_is_heard_once_and_nobody_else_by_whatever_they_are_called(
    bare: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rooms: type[Rooms]
) -> None:
    """X-2, L-11: names, quotations, previews, edits of what is gone, replays, a crowd, and a token
    that is taken back in between."""
    monkeypatch.setattr(follower, "REFUSED_S", 0.02)
    monkeypatch.setattr(listener, "REFUSED_S", 0.02)
    await attack(rooms(), await bare.bus("admin"), tmp_path)
