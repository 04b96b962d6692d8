"""What another agent's home has, taken in: memories, schedules, who it is (issue 39)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.cli import Cli
from tests.support.examples import up_to
from tests.support.world import running_world
from vigil.cli.foreign.files import FORMS, texts_of
from vigil.cli.foreign.home import read
from vigil.cli.foreign.talks import ForeignTalk, whole
from vigil.marks import conversation_label
from vigil.sdk.client import Client
from vigil.subjects import SessionKey

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
    sessions = "agents/main/sessions"
    openclaw[f"{sessions}/sessions.json"] = json.dumps(
        {
            "agent:main:main": {"sessionId": "s1", "displayName": "About the boat"},
            "agent:main:cron:1": {"sessionId": "s2"},
        }
    )
    entries: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T08:59:00Z"},
        entry("a", None, "user", "What is she called?"),
        entry("b", "a", "assistant", "Another answer"),
        entry("c", "a", "assistant", [{"type": "thinking"}, {"type": "text", "text": "Marigold."}]),
        entry("d", "c", "toolResult", "42"),
        entry("e", "d", "user", "Good."),
    ]
    openclaw[f"{sessions}/s1.jsonl"] = "\n".join(map(json.dumps, entries)) + '\n{"type": "mess'
    openclaw[f"{sessions}/s2.jsonl"] = json.dumps(entry("x", None, "user", "by itself"))
    for name, files in (("hermes", hermes), ("openclaw", openclaw)):
        for path, text in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    database(folder / "hermes" / "state.db")
    return folder / "hermes", folder / "openclaw"


def entry(id_: str, parent: str | None, role: str, content: Any) -> dict[str, Any]:
    at = f"2026-02-01T09:00:0{ord(id_) % 10}Z"
    message = {"role": role, "content": content}
    return {"type": "message", "id": id_, "parentId": parent, "timestamp": at, "message": message}


def database(path: Path) -> None:
    """Make Hermes' database of conversations: of one that was compacted, with a message undone."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT,"
            " started_at REAL NOT NULL);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,"
            " role TEXT NOT NULL, content TEXT, timestamp REAL NOT NULL, active INTEGER DEFAULT 1,"
            " compacted INTEGER DEFAULT 0, observed INTEGER DEFAULT 0);"
        )
        db.execute("INSERT INTO sessions VALUES ('h1', 'cli', 'The server', 1772355600)")
        db.execute("INSERT INTO sessions VALUES ('h2', 'cron', NULL, 1772355600)")
        for second, role, content, active, compacted in (
            (1, "user", "What runs on it?", 0, 1),
            (2, "assistant", "Debian.", 0, 1),
            (3, "user", "Undone", 0, 0),
            (4, "tool", "42", 1, 0),
            (2, "assistant", "Debian.", 1, 0),
            (5, "user", "x" * 20_000, 1, 0),
        ):
            row = ("h1", role, content, 1772355600 + second, active, compacted)
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp, active, compacted)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        db.commit()


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
        assert report["taken"] == {
            "memories": TAKEN | {"taken": 3},
            "rows": TAKEN,
            "conversations": TAKEN | {"taken": 1},
        }
        assert [one["line"] for one in report["left"]] == [1, 2, 3]
        assert "an admin" in report["kept"]["SOUL.md"]
        await do(cat, "import", "--from", "hermes", "--identity", str(hermes), code=4)
        await do(cat, "import", "--from", "hermes", "--user", "ann", str(hermes), code=4)
        becomes = ("import", "--from", "hermes", "--identity", "--user", "cat", str(hermes))
        for outcome in ("taken", "known"):
            done = await do(cat, *becomes, "--json", code=3, **admin)
            told = json.loads(done.stdout)
            assert told["taken"]["memories"] == TAKEN | {"known": 3}
            assert told["taken"]["conversations"] == TAKEN | {"known": 1}
            assert told["taken"]["identity"] == TAKEN | {outcome: 1}
            assert list(told["replaced"]) == ["SOUL.md"] * (outcome == "taken")
        assert (await do(root.agent_files))[0]["text"] == "You are brief."
        assert [one["name"] for one in await do(root.tokens_of_all) if one["name"]] == []
        trusting = ("import", "--from", "openclaw", "--trusted", str(openclaw))
        await do(cat, *trusting, "--json")
        assert "memories       0      3\n" in (await do(cat, *trusting)).stdout
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
        talks = {one["title"]: one for one in await do(lambda: list(mine.sessions()))}
        told = {
            title: [
                (one["role"], one["text"][:20], one["imported_from"], one.get("is_tainted", False))
                for one in (await do(mine.session, talk["session_key"]))["messages"]
            ]
            for title, talk in talks.items()
        }
        assert told == {
            "The server": [
                ("user", "What runs on it?", "hermes", True),
                ("assistant", "Debian.", "hermes", True),
                ("user", "x" * 20, "hermes", True),
                ("user", "x" * 20, "hermes", True),
            ],
            "About the boat": [
                ("user", "What is she called?", "openclaw", False),
                ("assistant", "Marigold.", "openclaw", False),
                ("user", "Good.", "openclaw", False),
            ],
        }
        rows = await do(mine.cron_rows, user="cat")
        assert {one["name"]: (one["when"], one["is_enabled"]) for one in rows} == {
            "Morning brief": ("At 07:00 every day (America/Los_Angeles)", True),
            "Look around": ("every 2 h", False),
        }
        # A kill between making a row and pausing it would have left it on.
        paused = next(one["id"] for one in rows if one["name"] == "Look around")
        shown = await do(mine.cron_row, paused)
        assert [one["is_enabled"] for one in shown["history"]] == [False]
        # Killed before it was named: the same again names it, unless somebody did.
        boat, server = (SessionKey.parse(talks[one]["session_key"]) for one in sorted(talks))
        await conversation_label.forget_conversation(world.admin, boat)
        await do(mine.change_session, str(server), title="Mine")
        await do(cat, *trusting)
        await do(cat, "import", "--from", "hermes", str(hermes), code=3)
        assert {one["title"] for one in await do(lambda: list(mine.sessions()))} == {
            "About the boat",
            "Mine",
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
    assert found.lines == {"memories": [], "rows": [], "conversations": []}


def test_a_database_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database at all, but long enough" * 9)
    texts, unread = texts_of(FORMS["hermes"], tmp_path)
    assert texts == {}
    assert "can't be read" in unread["state.db"]


def test_messages_of_one_id_are_all_taken() -> None:
    """What is there twice comes once; another message of the same id was left out, untold."""
    said = [{"id": "a", "text": text} for text in ("x", "y", "x", "y", "z")]
    (talk,) = whole([ForeignTalk("1", "", said)])
    assert [(one["id"], one["text"]) for one in talk.messages] == [
        ("a", "x"),
        ("a~2", "y"),
        ("a~3", "z"),
    ]


def test_a_database_with_other_columns_is_told(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as db:
        db.executescript(
            "CREATE TABLE sessions (id TEXT, started_at REAL);"
            "CREATE TABLE messages (id TEXT, session_id TEXT, timestamp REAL, body TEXT);"
            "INSERT INTO sessions VALUES ('h1', 1);"
            "INSERT INTO messages VALUES ('m1', 'h1', 1, 'Hello');"
        )
    _, unread = texts_of(FORMS["hermes"], tmp_path)
    assert "no such column" in unread["state.db"]


TEXTS = st.text(
    st.characters(exclude_characters="\0") | st.sampled_from("\u2028\x85\x0b\ud83d\ude00"),
    max_size=20,
)
"""With separators of lines that end none in JSON, and halves of characters."""


def as_shown(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip()


@up_to(100)
@example(texts=["one\u2028two", "cut \ud83d", "next\x85line"], is_ascii=False)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5), is_ascii=st.booleans())
def test_each_message_of_a_file_is_read(texts: list[str], is_ascii: bool) -> None:
    """As Node and Python write them: separators of lines as they stand, halves as escapes."""
    lines = [
        json.dumps(
            entry("abcde"[n], "abcde"[n - 1] if n else None, "user", text), ensure_ascii=is_ascii
        )
        for n, text in enumerate(texts)
    ]
    escaped = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", "\n".join(lines))
    read_ = read(FORMS["openclaw"], {"agents/a/sessions/s.jsonl": escaped}, is_trusted=True)
    found = [one["text"] for talk in read_.lines["conversations"] for one in talk.value["messages"]]
    assert found == [shown for text in texts if (shown := as_shown(text))]
    assert read_.left == []


@up_to(50)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_each_message_of_a_database_is_read(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.db"
        with contextlib.closing(sqlite3.connect(file)) as db:
            db.executescript(
                "CREATE TABLE sessions (id TEXT, started_at REAL);"
                "CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content TEXT,"
                " timestamp REAL);"
                "INSERT INTO sessions VALUES ('h1', 1);"
            )
            rows = [(n, as_shown(text), 1772355600 + n) for n, text in enumerate(texts)]
            db.executemany("INSERT INTO messages VALUES (?, 'h1', 'user', ?, ?)", rows)
            db.commit()
        stored, unread = texts_of(FORMS["hermes"], Path(folder))
    read_ = read(FORMS["hermes"], stored, is_trusted=True)
    found = [one["text"] for talk in read_.lines["conversations"] for one in talk.value["messages"]]
    assert (found, unread) == ([text for _, text, _ in rows if text], {})


WHEN: Final = [None, "soon", "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"]


@up_to(50)
@given(st.lists(st.sampled_from(WHEN), min_size=1, max_size=5))
def test_a_message_whose_time_cannot_be_read_is_of_the_one_before_it(times: list[Any]) -> None:
    """In their order; where none has a time, that is told."""
    lines = [
        json.dumps(
            entry("abcde"[n], "abcde"[n - 1] if n else None, "user", f"say {n}") | {"timestamp": at}
        )
        for n, at in enumerate(times)
    ]
    path = "agents/a/sessions/s.jsonl"
    read_ = read(FORMS["openclaw"], {path: "\n".join(lines)}, is_trusted=True)
    known = [at for at in times if at in WHEN[2:]]
    if not known:
        assert [(one.file, one.why) for one in read_.left] == [
            (path, "agents/a/sessions/s: none of its messages has a time")
        ]
        assert read_.lines["conversations"] == []
        return
    (talk,) = (one.value for one in read_.lines["conversations"])
    assert [one["text"] for one in talk["messages"]] == [f"say {n}" for n in range(len(times))]
    at = known[0]
    for said, time in zip(talk["messages"], times, strict=True):
        at = time if time in known else at
        assert datetime.fromisoformat(said["at"]) == datetime.fromisoformat(at)
    assert read_.left == []


def test_lines_that_cannot_be_read_are_told() -> None:
    """But not the last, which may be being written."""
    good = json.dumps(entry("a", None, "user", "Hello"))
    text = "\n".join([good, '{"type": "mess', "[]", good, '{"cut'])
    found = read(FORMS["openclaw"], {"agents/a/sessions/s.jsonl": text}, is_trusted=True)
    assert [(one.line, one.why) for one in found.left] == [
        (2, "can't be read, nor can 1 line below it")
    ]
    assert len(found.lines["conversations"]) == 1


def test_jobs_nested_without_end_are_told() -> None:
    found = read(FORMS["hermes"], {"cron/jobs.json": "[" * 5000 + "]" * 5000}, is_trusted=True)
    assert [one.why for one in found.left] == ["can't be read: it is nested too deep"]
