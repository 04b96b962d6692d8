"""`vigil tasks`: made, listed, shown with their history, moved (SPEC C-8, P-2)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.cli import Cli
from tests.support.gateway import running_gateway
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.cli import exits
from vigil.contracts import Change
from vigil.sdk.client import ApiError, Client
from vigil.subjects import Scope


async def test_what_cant_be_says_why(tmp_path: Path) -> None:
    """X-6, L-15, L-16: the 201st that is open, and a change of what somebody changed since."""
    async with running_gateway(tmp_path / "vigil") as gate:
        url, token = f"http://127.0.0.1:{gate.port}", await gate.token("ann")
        cli, client = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=token), Client(url, token)
        one = await asyncio.to_thread(client.make_task, "Tidy up")
        board, now = KeptBoard(gate.admin, TASKS), datetime.now(UTC)
        found = await board.find([Scope("*", "ann")], one["id"])
        assert found is not None
        others = (replace(found.entity, id=f"{number:032x}") for number in range(199))
        await asyncio.gather(*(board.replace(0, task, Change(by="ann"), now) for task in others))
        refused = await asyncio.to_thread(cli, "tasks", "add", "one more", code=2)
        assert "200 already; end one that isn't needed" in refused.stderr
        await asyncio.to_thread(cli, "tasks", "change", one["id"], "--priority", "low")
        with pytest.raises(ApiError, match="changed since you read it") as caught:
            await asyncio.to_thread(
                client.change_task, one["id"], status="backlog", revision=one["revision"]
            )
        assert exits.code_of(caught.value) == exits.CONFLICT
        there = await asyncio.to_thread(client.task, one["id"])
        assert (there["status"], there["priority"]) == ("ready", "low")


async def test_a_task_is_made_changed_moved_and_shown(tmp_path: Path) -> None:
    async with running_gateway(tmp_path / "vigil") as gate:
        url = f"http://127.0.0.1:{gate.port}"
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))

        async def ann(*args: str, code: int = 0) -> tuple[str, str]:
            done = await asyncio.to_thread(cli, "tasks", *args, code=code)
            return done.stdout, done.stderr

        assert (await ann())[1].startswith("No open tasks. `vigil tasks list --status done`")
        id_ = (await ann("add", "Tidy up", "--backlog", "--priority", "high"))[0].strip()
        (one,) = json.loads((await ann("--json"))[0])["tasks"]
        assert (one["id"], one["status"], one["priority"]) == (id_, "backlog", "high")
        assert "kept for later" in (await ann())[0] or id_[:8] in (await ann())[0]
        await ann("change", id_[:6], "--description", "the notes\x1b[31m")
        assert "not pending_approval" in (await ann("approve", id_[:6], code=3))[1]
        assert "it may go to ready" in (await ann("move", id_[:6], "done", code=2))[1]
        assert "waits for its turn" in (await ann("move", id_[:6], "ready", "--why", "now"))[1]
        shown = (await ann("show", id_[:6]))[0]
        assert "\\u001b[31m" in shown, "nothing in it can mislead"
        assert "ready: it waits for its turn" in shown
        assert shown.splitlines()[-1].split()[-3:-1] == ["ann", "now"]
        assert "move it to backlog first" in (await ann("remove", id_[:6], code=2))[1]
        assert "kept for later" in (await ann("cancel", id_[:6]))[1]
        assert (await ann("list", "--status", "ready"))[1] == "No tasks.\n"
        await ann("remove", id_[:6])
        assert (await ann())[1].startswith("No open tasks. `vigil tasks list --status done`")
        await ann("show", "ffff", code=3)
        assert "title" in (await ann("add", "x" * 201, code=2))[1]
        assert "description" in (await ann("add", "x", "--description", "x" * 8001, code=2))[1]
