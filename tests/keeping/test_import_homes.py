"""What another agent's home has, taken in: memories, schedules, who it is (issue 39)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.world import running_world
from vigil.cli.foreign.files import FORMS, texts_of
from vigil.cli.foreign.home import read
from vigil.sdk.client import Client

TAKEN = {"taken": 0, "known": 0}


def homes(folder: Path) -> tuple[Path, Path]:
    """Make a home of Hermes' and one of OpenClaw's, as their documentation has them."""
    hermes = {
        "SOUL.md": "You are brief.",
        "memories/MEMORY.md": "Cat's server\nis called Marigold\n§\nIt runs Debian\n§\n",
        "memories/USER.md": "Likes short answers",
        "cron/jobs.json": json.dumps(
            {
                "jobs": [
                    {
                        "id": "a",
                        "name": "news",
                        "prompt": "What is new?",
                        "enabled": True,
                        "schedule": {"kind": "interval", "minutes": 30, "display": "every 30m"},
                    },
                    {
                        "id": "b",
                        "name": "script",
                        "prompt": "",
                        "no_agent": True,
                        "script": "x.sh",
                        "schedule": {"kind": "cron", "expr": "0 9 * * *"},
                    },
                    {"id": "c", "name": "broken", "prompt": "Do it", "schedule": "every day"},
                ],
                "updated_at": "2026-03-01T08:00:00+00:00",
            }
        ),
        ".env": "KEY=secret",
    }
    openclaw = {
        "workspace/SOUL.md": "You are kind.",
        "workspace/USER.md": "Cat lives in Rome.",
        "workspace/MEMORY.md": "# Boat\n\nShe is called Marigold.",
        "workspace/memory/2026-02-01.md": "Bought rope.",
        "cron/jobs.json": json.dumps(
            {
                "version": 1,
                "jobs": [
                    {
                        "id": "1",
                        "name": "Morning brief",
                        "enabled": True,
                        "createdAtMs": 1,
                        "schedule": {
                            "kind": "cron",
                            "expr": "0 7 * * *",
                            "tz": "America/Los_Angeles",
                        },
                        "payload": {"kind": "agentTurn", "message": "Summarize overnight updates."},
                    },
                    {
                        "id": "2",
                        "name": "Look around",
                        "enabled": False,
                        "createdAtMs": 1,
                        "schedule": {"kind": "every", "everyMs": 7_200_000},
                        "payload": {"kind": "systemEvent", "text": "Look around."},
                    },
                ],
            }
        ),
    }
    for name, files in (("hermes", hermes), ("openclaw", openclaw)):
        for path, text in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return folder / "hermes", folder / "openclaw"


async def test_homes_of_other_agents_are_taken_once_by_their_standing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command: what they noted is from outside, and a schedule waits for the person's word;
    what isn't taken is told with its reason."""
    async with running_world(tmp_path / "home", monkeypatch) as world:
        url = f"http://127.0.0.1:{world.gate.port}"
        cat = Cli(tmp_path / "cat", VIGIL_URL=url, VIGIL_TOKEN=await world.gate.token("cat"))
        admin = {"VIGIL_TOKEN": await world.gate.token("root", is_admin=True)}
        root = Client(url, admin["VIGIL_TOKEN"])

        async def do(work: Any, *given: Any, **options: Any) -> Any:
            return await asyncio.to_thread(work, *given, **options)

        hermes, openclaw = homes(tmp_path)
        left = await do(cat, "import", "--from", "hermes", str(hermes), "--json", code=3)
        report = json.loads(left.stdout)
        assert report["taken"] == {"memories": TAKEN | {"taken": 3}, "rows": TAKEN}
        assert [one["line"] for one in report["left"]] == [1, 2, 3]
        assert "an admin" in report["kept"]["SOUL.md"]
        await do(cat, "import", "--from", "hermes", "--identity", str(hermes), code=4)
        await do(cat, "import", "--from", "hermes", "--user", "ann", str(hermes), code=4)
        becomes = ("import", "--from", "hermes", "--identity", "--user", "cat", str(hermes))
        for outcome in ("taken", "known"):
            done = await do(cat, *becomes, "--json", code=3, **admin)
            told = json.loads(done.stdout)
            assert told["taken"]["memories"] == TAKEN | {"known": 3}
            assert told["taken"]["identity"] == TAKEN | {outcome: 1}
            assert list(told["replaced"]) == ["SOUL.md"] * (outcome == "taken")
        assert (await do(root.agent_files))[0]["text"] == "You are brief."
        assert [one["name"] for one in await do(root.tokens_of_all) if one["name"]] == []
        trusting = ("import", "--from", "openclaw", "--trusted", str(openclaw))
        await do(cat, *trusting, "--json")
        assert "memories  0      3\n" in (await do(cat, *trusting)).stdout
        mine = Client(url, cat.environ["VIGIL_TOKEN"])
        listed = await do(lambda: list(mine.memories()))
        assert {one["content"]: one.get("is_tainted", False) for one in listed} == {
            "Cat's server\nis called Marigold": True,
            "It runs Debian": True,
            "Likes short answers": True,
            "workspace/MEMORY.md › Boat\nShe is called Marigold.": False,
            "workspace/USER.md\nCat lives in Rome.": False,
            "workspace/memory/2026-02-01.md\nBought rope.": False,
        }
        rows = await do(mine.cron_rows, user="cat")
        assert {one["name"]: (one["when"], one["is_enabled"]) for one in rows} == {
            "Morning brief": ("At 07:00 every day (America/Los_Angeles)", True),
            "Look around": ("every 2 h", False),
        }
        await do(cat, "import", "--from", "openclaw", str(tmp_path / "cat"), code=2)


def test_links_out_of_a_home_and_what_is_no_text_are_left(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    home = tmp_path / "home"
    (home / "memory").mkdir(parents=True)
    (home / "MEMORY.md").symlink_to(tmp_path / "secret")
    (home / "memory" / "day.md").write_bytes(b"\xff\xfe")
    (home / "cron").mkdir()
    (home / "cron" / "jobs.json").write_text('{"jobs": 3}')
    texts, unread = texts_of(FORMS["openclaw"], home)
    assert set(unread) == {"MEMORY.md", "memory/day.md"}
    found = read(FORMS["openclaw"], texts, is_trusted=True)
    assert [(one.file, one.why) for one in found.left] == [
        ("cron/jobs.json", "can't be read: has no list of jobs")
    ]
    assert found.lines == {"memories": [], "rows": []}
