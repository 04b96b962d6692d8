"""What the console's pages show and do, over HTTP as a browser without scripts would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support import approvals
from tests.support.console import Reader, pages, signed_in
from tests.support.gateway import Gate, until
from tests.support.goal_records import action_of
from tests.support.remembering import running_memories
from vigil.board.kept import ACTIONS, KeptBoard
from vigil.contracts import Change
from vigil.subjects import Scope, SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOSTILE: Final = (
    "</textarea></pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202etxt"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home, cortex={"autonomy_enabled": False}) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(gate: Gate) -> Reader:
    return await signed_in(gate, "ann")


async def act(gate: Gate, user: str, number: str, what: str) -> None:
    """Write down that an agent did something by itself."""
    action = action_of(id=number * 32, owner=user, agent="vigil", description=what)
    board = KeptBoard(gate.admin, ACTIONS)
    await board.create(
        lambda _: action, Scope("vigil", user), Change(by="vigil"), datetime.now(UTC)
    )


async def ask(gate: Gate, user: str, number: str, **fields: Any) -> str:
    """Ask for leave, as the executor does; return the id."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    asked = approvals.request(
        SessionKey(user, "vigil", "t1"), number * 32, expires_at=soon, **fields
    )
    await approvals.ask(gate, asked)
    return asked.id


async def test_today_tells_what_waits_and_what_was_done(gate: Gate, ann: Reader) -> None:
    """And nothing of others, also to an admin: theirs is for them to decide."""
    empty = await ann.page()
    assert "Nothing waits for you." in empty.text
    assert "Nothing is planned." in empty.text
    await ask(gate, "ann", "a", reason="the disk is full")
    await ask(gate, "bob", "b", reason="bob wants it")
    await act(gate, "ann", "c", "watered the plants")
    await act(gate, "bob", "d", "sold the car")
    api = await gate.person("ann")
    row = {"name": "Morning news", "prompt": "Read the news", "cron": "0 9 * * *"}
    assert (await api.post("/api/cron", json=row)).status_code == 201
    shown = (await ann.page()).text
    for text in ("1 waits for you", "the disk is full", "watered the plants", "Morning news"):
        assert text in shown
    admin = await (await signed_in(gate, "root", is_admin=True)).page()
    assert "Nothing waits for you." in admin.text
    for text in ("bob wants it", "sold the car"):
        assert text not in shown


async def test_the_switch_is_on_every_page(gate: Gate, ann: Reader) -> None:
    """Everybody has their own; that for all is an admin's, whoever sends the form."""
    for path in pages():
        assert "Pause my agents" in (await ann.page(path)).text
    assert await ann.did("/pause", whose="mine", to="on", back="/console/browsers") == (
        "/console/browsers"
    )
    assert "End my pause" in (await ann.page()).text
    assert await ann.did("/pause", whose="mine", to="off", back="//evil.example") == "/console"
    assert "Pause my agents" in (await ann.page()).text
    assert (await ann.send("/pause", whose="all", to="on")).status_code == 403
    root = await signed_in(gate, "root", is_admin=True)
    await root.did("/pause", whose="all", to="on")

    async def notice() -> bool:
        return "paused, for all" in (await ann.page()).text

    await until(notice, "the pause is shown")
    await root.did("/pause", whose="all", to="off")


async def test_what_others_wrote_is_text(gate: Gate, ann: Reader) -> None:
    """Markup, scripts, terminal escapes, turned lines, a line of a megabyte: nothing of it acts."""
    await ask(gate, "eve", "e", reason=HOSTILE, tool="shell", input={"argv": [HOSTILE]})
    await act(gate, "eve", "f", HOSTILE)
    eve = await signed_in(gate, "eve")
    for path in pages():
        shown = await eve.page(path)
        assert not [tag for tag, _ in shown.tags if tag in ("script", "img")]
        assert "\x1b" not in shown.text
        assert "\u202e" not in shown.text
        assert not [name for _, found in shown.tags for name in found if name.startswith("on")]
    assert "alert(1)" in (await eve.page()).text
    assert "⟨202E⟩" in (await eve.page()).text
