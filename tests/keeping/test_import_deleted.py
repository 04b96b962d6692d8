"""What a person deleted since an export was made isn't brought back by taking it in (X-8)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.keeping.test_import_conversations import lines, person
from tests.support.cli import Cli, running_vigil

SECRET, KEPT = "The secret is under the oak", "The cat is grey"
THREAD, OTHER = "ann:vigil:t1", "ann:vigil:t2"


def contents(ann: Cli) -> list[str]:
    return sorted(one["content"] for one in ann.json("memory", "list")["memories"])


def sessions(ann: Cli) -> list[str]:
    return sorted(one["session_key"] for one in ann.json("sessions")["sessions"])


def deleted(ann: Cli) -> None:
    """Delete a conversation, a memory and a task, and wait until the conversation is gone."""
    (memory,) = (one for one in ann.json("memory", "list")["memories"] if one["content"] == SECRET)
    ann("memory", "forget", memory["id"])
    (task,) = ann.json("tasks")["tasks"]
    ann("tasks", "remove", task["id"])
    until = time.monotonic() + 60
    while not ann.json("delete", THREAD, "--yes").get("done_at"):
        assert time.monotonic() < until


@pytest.fixture(name="home")
def a_home(tmp_path: Path) -> Any:
    """Lead to a home in which a person had more when they exported it than they have now."""
    with running_vigil(tmp_path / "home") as cli:
        ann = person(cli, "ann")
        for thread in ("t1", "t2"):
            ann("send", "My basil is called Bruno", "--thread", thread)
        for text in (SECRET, KEPT):
            ann("memory", "save", text)
        ann("tasks", "add", "Water it", "--backlog")
        cli("export", "--user", "ann", str(tmp_path / "ann.zip"))
        deleted(ann)
        yield cli, ann, str(tmp_path / "ann.zip")


def test_what_was_deleted_since_is_left_out_and_told(home: tuple[Cli, Cli, str]) -> None:
    """Whether they vouch for it or not; `--deleted` takes it in, and what is deleted once more is
    left out once more."""
    cli, ann, export = home
    left = {"conversation": 1, "memory": 1, "task": 1}
    had = lines(ann, OTHER)
    for vouched in (["--trusted"], []):
        told = cli("import", export, *vouched).stdout
        assert "Deleted here since it was exported, and left out: conversation: 1" in told
        assert "--deleted takes these in, too." in told
        report = cli.json("import", export, *vouched)
        assert (report["taken"], report["deleted"]) == ({}, left)
    assert THREAD not in sessions(ann)
    assert lines(ann, OTHER) == had
    assert SECRET not in contents(ann)
    assert ann.json("tasks")["tasks"] == []

    report = cli.json("import", export, "--trusted", "--deleted")
    assert report["deleted"] == {}
    assert {kind: report["taken"][kind] for kind in ("conversation", "task")} == {
        "conversation": 1,
        "task": 1,
    }
    assert report["taken"]["memory (save)"] == 1
    assert lines(ann, THREAD)
    assert contents(ann).count(SECRET) == 1
    assert len(ann.json("tasks")["tasks"]) == 1
    assert cli.json("import", export, "--trusted", "--deleted")["taken"] == {}

    deleted(ann)
    assert cli.json("import", export, "--trusted")["deleted"] == left
    assert SECRET not in contents(ann)
    cli("import", export, "--trusted", "--deleted")
    assert contents(ann).count(SECRET) == 1


def test_a_newer_conversation_of_that_name_is_exported_and_comes(
    home: tuple[Cli, Cli, str], tmp_path: Path
) -> None:
    """What is deleted is what an older export has."""
    cli, ann, _ = home
    ann("send", "Hello anew", "--thread", "t1")
    had = lines(ann, THREAD)
    newer = str(tmp_path / "newer.zip")
    cli("export", "--user", "ann", newer)
    cli("erase", "--user", "ann", "--yes")
    report = cli.json("import", newer, "--trusted")
    assert report["deleted"] == {}
    assert lines(person(cli, "ann"), THREAD) == had
