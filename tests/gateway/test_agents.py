"""A second agent, made and changed over HTTP and in the console: in the file, with its comments."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest

from services.cortex.thought.identity import Identities
from tests.support.console import signed_in
from tests.support.gateway import Gate, assert_problem
from vigil.settings.live import followed

LOOK: Final = {"what": "https://b.example", "hours": "07:00-22:00"}
MINE: Final = (
    '# Mine.\n[person]\ntimezone = "Europe/Vienna" # home\n'
    '[agent]\nlooks = [{ what = "https://b.example", hours = "07:00-22:00" }] # by day\n'
)


@pytest.fixture(autouse=True)
def as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at here; a gateway that begins anew meanwhile ends connections."""
    monkeypatch.setattr(followed, "POLL_S", 3600.0)


async def test_agents_are_made_and_changed(gate: Gate, tmp_path: Path) -> None:
    """By admins alone; whose name is taken, or who isn't there, is told apart; teams stay."""
    (file := tmp_path / "vigil.toml").write_text(
        f'{MINE}[agents.desk]\nkind = "team"\nmembers = ["ann"]\n'
    )
    root, ann = await gate.person("root", is_admin=True), await gate.person("ann")
    wanted = {"name": "coach", "authority": "observe", "role": "You coach."}
    assert_problem(await ann.post("/api/agents", json=wanted), 403)
    assert_problem(await ann.get("/api/agents"), 403)
    made = await root.post("/api/agents", json=wanted)
    assert (made.status_code, made.json()["authority"]) == (201, "observe")
    assert_problem(await root.post("/api/agents", json=wanted), 409, "name")
    assert_problem(await root.post("/api/agents", json={"name": "a b"}), 422, "name")
    looks = ["feed:https://a.example/news", LOOK["what"]]
    changed = await root.patch("/api/agents/coach", json={"looks": looks, "model": ""})
    assert changed.json()["looks"] == looks
    assert_problem(await root.patch("/api/agents/nobody", json={"model": "x"}), 404, "agentId")
    assert_problem(await root.patch("/api/agents/desk", json={"authority": "act"}), 409, "agentId")
    # All of a change, or nothing; a model that there isn't would keep the next start from working.
    for wrong in ({"looks": ["nonsense"]}, {"model": "gtp"}):
        assert_problem(
            await root.patch("/api/agents/coach", json={"authority": "act"} | wrong), 409
        )
    assert file.read_text().startswith(MINE)
    section = tomllib.loads(file.read_text())["agents"]["coach"]
    assert section == {"authority": "observe", "looks": [looks[0], LOOK]}
    same = {"authority": "observe", "looks": looks, "model": ""}
    before = file.read_bytes()
    assert (await root.patch("/api/agents/coach", json=same)).is_success
    assert file.read_bytes() == before
    listed = (await root.get("/api/agents")).json()["agents"]
    assert [(one["name"], one["kind"]) for one in listed] == [
        ("coach", "personal"),
        ("desk", "team"),
        ("vigil", "personal"),
    ]
    assert Identities(tmp_path / "agents").load("coach", "ann").role == "You coach."
    await _in_the_console(gate, tmp_path)


async def _in_the_console(gate: Gate, home: Path) -> None:
    """By who never opens a terminal; who is no admin sees no form for it, and is refused."""
    admin, ann = await signed_in(gate, "root", is_admin=True), await signed_in(gate, "ann")
    form = {"name": "cook", "role": "You coach.</textarea>", "authority": "suggest"}
    assert "Make another" not in (await ann.page("/agents")).text
    assert (await ann.send("/agents", **form)).status_code == 403
    assert "Make another" in (await admin.page("/agents")).text
    assert await admin.did("/agents", **form) == "/console/agents/cook?saved=made"
    listed = [one[16:] for one in (await admin.page("/agents")).links if "/agents/" in one]
    assert listed == ["coach", "cook", "vigil"]  # though nobody talked with them; and no team
    assert "/console/agents/cook" not in (await ann.page("/agents")).links
    change = {
        "do": "change",
        "authority": "act",
        "model": "",
        "looks": "https://a.example\n\n feed:https://b.example/x ",
    }
    assert (await ann.send("/agents/cook", **change)).status_code == 403
    assert await admin.did("/agents/cook", **change) == "/console/agents/cook?saved=change"
    page = await admin.page("/agents/cook", saved="change")
    assert "https://a.example\nfeed:https://b.example/x" in page.text
    assert not page.strange()
    section = tomllib.loads((home / "vigil.toml").read_text())["agents"]["cook"]
    assert section["looks"] == ["https://a.example", "feed:https://b.example/x"]
