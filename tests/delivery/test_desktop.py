"""Notifications of a desktop, by a real D-Bus daemon (SPEC D-1, D-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import desktop
from tests.support.desktop import DesktopServer, running_bus
from vigil.channels.answers import Answer, NotTaken, Taken, Unclear
from vigil.channels.contract import ChannelContext
from vigil.channels.notices.desktop import Desktop
from vigil.clock import SystemClock
from vigil.contracts import Said
from vigil.errors import InvalidInput


def said(text: str = "Tea is ready", user: str = "ann", **more: Any) -> Said:
    return Said(
        id="e1", session_key=f"{user}:vigil:main", text=text, caused_by="", turn_seq=1,
        at=datetime(2026, 11, 28, tzinfo=UTC), **more,
    )  # fmt: skip


async def test_a_desktop_shows_words_and_each_try_ends_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks in a text are text; what is urgent is critical; what may be shown isn't shown again."""
    context = ChannelContext(name="desk", home=tmp_path, clock=SystemClock())
    async with running_bus(tmp_path) as (address, daemon):
        sender = Desktop(user="ann", bus=address, timeout_s=5.0).sender(context)

        async def tried(**more: Any) -> Answer:
            return await sender.send(said(**more), 1)

        nobody = await tried()
        assert isinstance(nobody, NotTaken)
        assert "ServiceUnknown" in nobody.reason
        server = DesktopServer("body", "body-markup", "actions")
        async with server.running(address):
            assert await tried(text='<a href="https://x.example">hi</a> &amp;') == Taken()
            assert await tried(is_urgent=True) == Taken()
            assert [one[3:5] for one in server.notices] == [
                ("Vigil", '&lt;a href="https://x.example"&gt;hi&lt;/a&gt; &amp;'),
                ("Vigil", "Tea is ready"),
            ]
            assert [one[6]["urgency"] for one in server.notices] == [("y", 1), ("y", 2)]
            assert {(one[0], one[1], tuple(one[5])) for one in server.notices} == {("Vigil", 0, ())}
            assert isinstance(await tried(user="bob"), NotTaken)
            server.capabilities = ("body",)
            await tried(text="a < b")
            server.capabilities = ()
            await tried(text="a < b")
            assert [one[3:5] for one in server.notices[2:]] == [
                ("Vigil", "a < b"),
                ("Vigil: a < b", ""),
            ]
            server.answer = desktop.refused
            assert isinstance(await tried(), NotTaken)
            server.answer = desktop.silent
            hasty = Desktop(user="ann", bus=address, timeout_s=0.1).sender(context)
            assert isinstance(await hasty.send(said(), 1), Unclear)

            def ended(*_: object) -> None:
                daemon.kill()

            server.answer = ended
            assert isinstance(await tried(), Unclear)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    gone = await Desktop(user="ann").sender(context).send(said(), 1)
    assert isinstance(gone, NotTaken)
    assert gone.reason.startswith("no desktop is there: ")


def test_a_bus_is_one_of_this_machine() -> None:
    for section, field in (
        (Desktop(user="ann", bus="tcp:host=desk.example,port=1"), "bus"),
        (Desktop(user="ann", is_idempotent=True), "is_idempotent"),
    ):
        with pytest.raises(InvalidInput) as refused:
            section.check_fields()
        assert refused.value.field == field
