"""`vigil tasks`: made, listed, shown with their history, moved (SPEC C-8, P-2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.support.cli import Cli
from tests.support.gateway import running_gateway


async def test_a_task_is_made_changed_moved_and_shown(tmp_path: Path) -> None:
    async with running_gateway(tmp_path / "vigil") as gate:
        url = f"http://127.0.0.1:{gate.port}"
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))

        async def ann(*args: str, code: int = 0) -> tuple[str, str]:
            done = await asyncio.to_thread(cli, "tasks", *args, code=code)
            return done.stdout, done.stderr

        assert (await ann())[1] == "No tasks.\n"
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
        assert "kept for later" in (await ann("cancel", id_[:6]))[1]
        assert (await ann("list", "--status", "ready"))[1] == "No tasks.\n"
        await ann("show", "ffff", code=3)
        await ann("add", "x" * 201, code=2)
