"""Erasing a person for whom tools run and workers work (SPEC X-8, S17)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
import pytest

from services.cortex.model import ModelAnswer, ModelRequest
from services.executor.sandbox.choice import choose
from tests.support import timers
from tests.support.scripted_model import ScriptedModel, say
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.backup import workspaces
from vigil.clock import SystemClock
from vigil.contracts import ToolUseBlock, Usage
from vigil.erasure import residue
from vigil.erasure.erase import Eraser
from vigil.marks import erasure
from vigil.settings.sections import Executor
from vigil.subjects import SessionKey

SERVICES = ("cortex", "scheduler", "executor", "delivery")
USER, OTHER = "CANARYuser", "bob"


def calls(name: str, **arguments: object) -> ModelAnswer:
    usage = Usage(model="scripted", input_tokens=1, output_tokens=1)
    use = ToolUseBlock(id="c1", name=name, input=arguments)
    return ModelAnswer(blocks=(use,), stop_reason="tool_use", usage=usage)


def works_for_ever(request: ModelRequest) -> ModelAnswer:
    """Begin a command that goes on and on; in the conversation, have a worker do the same."""
    key = SessionKey.parse(request.session_key)
    if any(isinstance(block, ToolUseBlock) for row in request.rows for block in row.blocks):
        return say("I am at it.")
    if key.thread == "t2":
        return calls("spawn_worker", task="CANARYtext")
    name = "worker" if key.is_system else "own"
    return calls("shell", command=f"while echo CANARYtext >> {name}.txt; do sleep 0.05; done")


async def begun(stack: Stack, *files: Path) -> None:
    async def are_there() -> bool:
        return all(file.exists() for file in files)

    await timers.until(are_there, timeout_s=20)


def commands() -> int:
    """Count the processes that were started from here and that write for somebody."""
    found = 0
    for process in psutil.Process().children(recursive=True):
        try:
            found += "CANARYtext" in " ".join(process.cmdline())
        except psutil.Error:
            continue
    return found


async def erased(stack: Stack, user: str) -> Eraser:
    admin = await stack.bus("admin")
    nothing: Callable[[str, int], None] = lambda step, done: None  # noqa: E731
    eraser = Eraser(admin, user, SystemClock(), nothing)
    mark = await eraser.run()
    await erasure.end(admin, user, mark, datetime.now(UTC))
    return eraser


async def test_what_runs_for_them_is_ended_and_their_folders_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: by the executor, wherever it is, before anybody looks; another's command goes on."""
    if (choice := await choose(Executor())).kind == "off":
        pytest.skip(choice.problem)
    ScriptedModel(works_for_ever).install(monkeypatch)
    async with running_stack(tmp_path, services=SERVICES) as stack:
        work = stack.settings.workspaces / "vigil"
        talks = [await Talk.open(stack, f"{user}:vigil:t1") for user in (USER, OTHER)]
        talks.append(await Talk.open(stack, f"{USER}:vigil:t2"))
        for talk in talks:
            await talk.say("go on and on")
        await begun(stack, work / USER / "own.txt", work / USER / "worker.txt",
                    work / OTHER / "own.txt")  # fmt: skip
        assert commands() > 0
        eraser = await erased(stack, USER)
        assert {"SESSIONS", "SYSTEM", "TIMERS"} <= eraser.swept.deleted.keys()
        assert await eraser.left() == {}
        assert {path.name.partition(".")[0] for path in work.iterdir()} == {OTHER}
        before = (work / OTHER / "own.txt").stat().st_size

        async def has_gone_on() -> bool:
            return (work / OTHER / "own.txt").stat().st_size > before

        await timers.until(has_gone_on, timeout_s=10)
        await erased(stack, OTHER)
        assert list(work.iterdir()) == []
        assert commands() == 0
        assert await eraser.left() == {}


def test_only_their_folders_are_emptied(tmp_path: Path) -> None:
    """X-8: a team's, another's and what links lead to stay; what can't be opened goes, too."""
    root, outside = tmp_path / "workspaces", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    for owner in ("ann", "anna", "team"):
        (root / "vigil" / owner / "sub").mkdir(parents=True)
        (root / "vigil" / owner / "sub" / "file").write_text("x" * 10)
        (root / "vigil" / f"{owner}.marks.json").write_text("{}")
    theirs = root / "vigil" / "ann"
    (theirs / "out").symlink_to(outside)
    (theirs / "sub" / "secret").symlink_to(outside / "kept")
    os.mkfifo(theirs / "pipe")
    (theirs / "sub").chmod(0)
    (root / "other").symlink_to(root / "vigil")
    assert workspaces.scrub(root, lambda owner: owner == "ann") == 1
    assert workspaces.scrub(root, lambda owner: owner == "ann") == 0
    assert (outside / "kept").read_text() == "kept"
    left = sorted(path.name for path in (root / "vigil").iterdir())
    assert left == ["anna", "anna.marks.json", "team", "team.marks.json"]
    assert workspaces.scrub(tmp_path / "none", lambda owner: True) == 0


@contextlib.contextmanager
def deep(folder: Path, levels: int = 1500) -> Iterator[None]:
    """Nest folders deeper than a path, or a recursion, can go; whoever tidies up after us can't."""
    opened = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=opened)
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=opened))
    os.close(opened)
    try:
        yield
    finally:
        workspaces.scrub(folder.parent.parent, lambda owner: owner == folder.name)


def test_whatever_a_command_left_there_goes(tmp_path: Path) -> None:
    """S10: folders without an end, and files of holes that would take the disk if filled."""
    theirs = tmp_path / "workspaces" / "vigil" / "ann"
    theirs.mkdir(parents=True)
    with (theirs / "holes").open("wb") as file:
        file.truncate(1 << 42)
        file.seek(1 << 41)
        file.write(b"CANARYtext")
    (theirs / "locked").write_text("x")
    (theirs / "locked").chmod(0)
    (tmp_path / "link").symlink_to(tmp_path / "workspaces")
    with deep(theirs):
        assert workspaces.scrub(tmp_path / "link", lambda owner: owner == "ann") == 1
    assert not theirs.exists()


def test_a_link_in_the_place_of_a_folder_is_only_removed(tmp_path: Path) -> None:
    """S14: what it leads to isn't theirs."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (tmp_path / "workspaces" / "vigil").mkdir(parents=True)
    (tmp_path / "workspaces" / "vigil" / "ann").symlink_to(outside)
    workspaces.scrub(tmp_path / "workspaces", lambda owner: owner == "ann")
    assert (outside / "kept").read_text() == "kept"
    assert list((tmp_path / "workspaces" / "vigil").iterdir()) == []


def test_files_of_tools_are_told_as_such(tmp_path: Path) -> None:
    """S17: whatever they are called, wherever they lead, however deep they are."""
    work = tmp_path / "workspaces" / "vigil" / "bob"
    work.mkdir(parents=True)
    (work / "index.db").write_text("ann. and so on")
    (work / "notes.log").write_text("user:ann")
    (work / "away").symlink_to("/proc/kcore")
    Path(os.fsdecode(bytes(work) + b"/\xff")).write_text("ann")
    with deep(work):
        found = residue.scan(tmp_path, "ann", swept_ns=time.time_ns())
    assert {one.kind for one in found} == {"workspace"}
    assert len(found) == 3
    msgspec.json.encode(found)


async def test_a_mark_that_was_set_before_is_heeded_at_the_start(tmp_path: Path) -> None:
    """X-8: the executor was away when the person was marked."""
    async with running_stack(tmp_path, services=()) as stack:
        folder = stack.settings.workspaces / "vigil" / USER
        folder.mkdir(parents=True)
        (folder / "file").write_text("CANARYtext")
        await erasure.begin(await stack.bus("admin"), USER, datetime.now(UTC))
        await stack.start("executor")

        async def is_gone() -> bool:
            return not folder.exists()

        await timers.until(is_gone, timeout_s=10)
        await asyncio.sleep(0)
