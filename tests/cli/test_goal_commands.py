"""`vigil goals`, `preferences` and `actions`: set, shown with their history, judged (P-2)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.gateway import running_gateway
from tests.support.goal_records import action_of
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.cli import exits
from vigil.contracts import Change, short_name
from vigil.sdk.client import ApiError, Client
from vigil.subjects import Scope


async def test_goals_preferences_and_actions_from_a_terminal(tmp_path: Path) -> None:
    async with running_gateway(tmp_path / "vigil") as gate:
        url, token = f"http://127.0.0.1:{gate.port}", await gate.token("ann")
        cli, client = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=token), Client(url, token)

        async def ann(*args: str, code: int = 0) -> tuple[str, str]:
            done = await asyncio.to_thread(cli, *args, code=code)
            return done.stdout, done.stderr

        assert (await ann("goals"))[1] == "No goals.\n"
        made = await ann("goals", "add", "Ship it\x1b[31m", "--until", "2100-01-01T00:00:00Z")
        id_ = made[0].removesuffix("\n")
        assert made[1] == (
            f"'Ship it\\x1b[31m' is pursued; looked at every 1 d. Its id is {id_[:8]}.\n"
        )
        assert "is paused" in (await ann("goals", "pause", id_[:6], "--why", "a holiday"))[1]
        assert "is pursued" in (await ann("goals", "resume", id_[:6]))[1]
        parts = (await ann("goals", "split", id_[:6], "Tests", "Notes"))[0].split()
        assert (
            "a part of itself"
            in (await ann("goals", "change", id_[:6], "--parent", parts[0], code=2))[1]
        )
        await ann("goals", "change", parts[0], "--parent", "", "--priority", "5")
        (first, *_) = json.loads((await ann("goals", "--json"))[0])["goals"]
        assert (first["id"], first["parent"], first["priority"]) == (parts[0], "", 5)
        shown = (await ann("goals", "show", id_[:6]))[0]
        assert "\\u001b[31m" in shown
        assert "a holiday" in shown
        assert re.search("^checked every +1 d$", shown, re.MULTILINE), "as `cron` says it"
        assert "is reached" in (await ann("goals", "complete", id_[:6]))[1]
        await ann("goals", "archive", id_[:6])
        called = short_name(parts[1], "g")
        assert "is paused" in (await ann("goals", "pause", called.upper()))[1], "a part by its name"
        assert called in (await ann("goals"))[0]
        assert "is pursued" in (await ann("goals", "resume", called))[1]
        assert "no goal is named 'none'" in (await ann("goals", "show", "none", code=3))[1]
        await asyncio.to_thread(client.set_person, {"timezone": "Asia/Tokyo"})
        # As rows of the timetable have it, on the person's clocks.
        await ann("goals", "change", parts[0], "--every", "2h", "--until", "2100-01-01")
        (shown,) = [
            one
            for one in json.loads((await ann("goals", "--json"))[0])["goals"]
            if one["id"] == parts[0]
        ]
        assert (shown["check_interval_secs"], shown["deadline_at"]) == (
            7200, "2099-12-31T15:00:00Z",
        )  # fmt: skip
        refused = await ann("goals", "add", "Late", "--until", "soon", code=2)
        assert "--until: 'soon' is no moment" in refused[1]
        with pytest.raises(ApiError, match="changed since you read it") as caught:
            await asyncio.to_thread(client.change_goal, parts[1], status="paused", revision=1)
        assert exits.code_of(caught.value) == exits.CONFLICT

        said = (await ann("preferences", "set", "communication", "answers", "short"))[1]
        assert 'answers: "short" (conviction)' in said
        assert (
            'not "short"'
            in (await ann("preferences", "correct", "communication", "answers", "short"))[1]
        )
        assert "conviction" in (await ann("preferences", "confirm", "answers"))[1]
        assert "corrected" in (await ann("preferences", "show", "answers"))[0]
        assert "key" in (await ann("preferences", "set", "code", "A b", "1", code=2))[1]
        await ann("preferences", "remove", "answers")
        assert (await ann("preferences"))[1] == "No preferences.\n"

        seen = await asyncio.to_thread(on_a_terminal, cli, "tasks", "add", "Water the roses")
        assert re.fullmatch(
            r"'Water the roses' waits for its turn\. Its id is [0-9a-f]{8}\.\r\n", seen
        ), "the sentence alone: a script gets the id"

        assert (await ann("actions"))[1] == "No actions.\n"
        action, whose = action_of(description="df\x1b[31m"), Scope("vigil", "ann")
        await KeptBoard(gate.admin, ACTIONS).create(
            lambda _: action, whose, Change(by="vigil"), datetime.now(UTC)
        )
        assert "disliked: ask first" in (await ann("actions", "dislike", "bbb", "ask first"))[1]
        assert "disliked: ask first" in (await ann("actions"))[0]
        assert "\\u001b[31m" in (await ann("actions", "show", "bbb"))[0]
        await ann("actions", "show", "ccc", code=3)


def on_a_terminal(cli: Cli, *args: str) -> str:
    """Return what a command shows on a terminal, with what it says on stderr."""
    ours, theirs = os.openpty()
    try:
        assert cli.start_at(theirs, *args).wait(30) == 0
        return os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
