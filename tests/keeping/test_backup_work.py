"""What agents work on in a backup: their sessions, the board, their files (SPEC X-9)."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.keeping.test_backup import restored, save
from tests.keeping.test_backup_memory import running_again
from tests.keeping.test_erase_work import deep
from tests.support import hands_records
from tests.support.pictures import png
from tests.support.stack import Stack
from tests.support.timetable_records import ROW, SLOT
from vigil.attachments import store
from vigil.attachments.examine import examined
from vigil.backup import backup, board, snapshots, workspaces
from vigil.backup.archive import Archive
from vigil.board.kept import ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import (
    BoardChange,
    BoardChangePayload,
    BoardEntry,
    Cause,
    Change,
    Job,
    State,
    Turn,
    decode_board,
    encode,
)
from vigil.contracts.board import CronWork, LastSeen, Ledger, WatchedUrl
from vigil.layout import LogLayout
from vigil.subjects import Scope, SessionKey
from vigil.timetable.log import Placed, SlotLog
from vigil.topology import EXECUTOR_TURNS_SYSTEM
from vigil.watching.watched import what_of

KEY = SessionKey("ann", "vigil", "_planner-1")
AT = datetime(2026, 11, 20, 9, tzinfo=UTC)


def job_turn(number: int, *, status: Any = "running") -> Turn:
    """A turn that says of a job that it is at step `number`."""
    job = replace(hands_records.JOB, session_key=str(KEY), status=status, error=f"step {number}")
    effect = BoardChange(
        id=f"{number:032x}", ordinal=number, payload=BoardChangePayload(entity=job)
    )
    return Turn(
        id=f"turn-{number}", session_key=str(KEY), ordinal=number,
        event=Cause(id="e", seq=1, type="control"), outcome="continued",
        state=State(turns=number), created_at=AT, effects=(effect,),
    )  # fmt: skip


async def carry_out(admin: Bus, executor: Bus, number: int) -> None:
    """Commit a turn, and do what the executor does with it: the board, then the ack."""
    record = job_turn(number)
    await admin.publish(KEY.turn, encode(record))
    puller = await executor.pull(EXECUTOR_TURNS_SYSTEM)
    message = await puller.next_within(5)
    assert message is not None
    (effect,) = record.effects
    assert isinstance(effect, BoardChange)
    entry = BoardEntry(entity=effect.payload.entity, turn_seq=message.seq, at=AT)
    await executor.publish(KEY.board("job", hands_records.JOB.id), encode(entry))
    await executor.ack(message)
    await executor.connection.flush()
    await puller.close()


async def job_on_the_board(bus: Bus) -> Job:
    found = await bus.get_last("BOARD", KEY.board("job", hands_records.JOB.id))
    assert found is not None
    entity = decode_board(found.data).entity
    assert isinstance(entity, Job)
    return entity


async def test_what_changes_while_the_backup_is_made_is_on_the_board_afterwards(
    bare: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: BOARD is taken before SYSTEM; in between a turn is carried out and acknowledged."""
    admin, executor = await bare.bus("admin"), await bare.bus("executor")
    await carry_out(admin, executor, 1)
    file, home = tmp_path / "b.tar", tmp_path / "new"
    real = snapshots.save

    async def slowly(bus: Bus, name: str, *args: Any) -> Any:
        if name == "SYSTEM":
            await carry_out(admin, executor, 2)
        return await real(bus, name, *args)

    monkeypatch.setattr(snapshots, "save", slowly)
    await save(admin, bare.settings, file)
    floors = Archive.open(file).manifest.floors
    assert floors.keys() == {"SESSIONS", "SYSTEM"}
    await restored(file, home)
    async with running_again(home) as again:
        assert (await job_on_the_board(again.admin)).error == "step 2"
        assert await board.catch_up(again.admin, floors, timedelta(days=30)) == 0, (
            "a repeat changes nothing"
        )
        assert len(await again.admin.read("BOARD", ["board.>"])) == 2


async def test_attachments_come_back(bare: Stack, tmp_path: Path) -> None:
    """X-9: what a message names, whole."""
    admin, home, file = await bare.bus("admin"), tmp_path / "new", tmp_path / "b.tar"
    data = png(1, 1, fill=os.urandom(700_000))
    about = examined("a.png", data)
    await store.upload(admin, "ann", about, data)
    assert await store.keep(admin, "ann", about.hash)
    await save(admin, bare.settings, file)
    await restored(file, home)
    async with running_again(home) as again:
        assert await store.find(again.admin, "ann", about.hash) == about
        assert await store.read(again.admin, "ann", about) == data


async def test_a_watcher_remembers_what_it_saw(bare: Stack, tmp_path: Path) -> None:
    """X-9: after a restore it tells of what changed since, and of nothing else."""
    admin, home, file = await bare.bus("admin"), tmp_path / "new", tmp_path / "b.tar"
    watch = WatchedUrl(url="https://a.example/")
    row = replace(ROW, work=CronWork(prompt="What is new?", watch=watch))
    seen = LastSeen(what=what_of(watch), etag="tag", digest="1f" * 32, text="calm", failures=2)
    whose = Scope(row.agent, row.owner)
    await KeptBoard(admin, ROWS).replace(0, row, Change(by="ann"), AT)
    await SlotLog(admin).append(whose, Placed(Ledger(seen=seen)), replace(SLOT, ledger=Ledger()))
    await save(admin, bare.settings, file)
    await restored(file, home)
    async with running_again(home) as again:
        kept = await KeptBoard(again.admin, ROWS).find([whose], row.id)
        assert kept is not None
        assert kept.entity.work == row.work
        assert (await SlotLog(again.admin).last(whose, row.id)).ledger.seen == seen


async def test_truths_come_last(bare: Stack, tmp_path: Path) -> None:
    """X-9: what is made of a stream is taken before it; what a worker told is in SESSIONS."""
    await save(await bare.bus("admin"), bare.settings, tmp_path / "b.tar")
    taken = list(Archive.open(tmp_path / "b.tar").manifest.streams)
    assert taken == backup.stream_names(LogLayout())
    assert taken[-5:] == ["SYSTEM", "SESSIONS", "MEMORIES", "SLOTS", "FILES"]
    assert taken.index("SIGNALS") < min(taken.index("BOARD"), taken.index("DEAD"))
    assert {"BOARD", "KV_TOOLS", "KV_PINS"} < set(taken)
    assert "KV_LEASES" not in taken


async def test_files_come_back_as_they_were(bare: Stack, tmp_path: Path) -> None:
    """X-9: workspaces and skills; of what isn't a plain file, nothing, and nothing of elsewhere."""
    old, home, file = bare.settings.home, tmp_path / "new", tmp_path / "b.tar"
    (old / "skills").mkdir()
    (old / "skills" / "report.md").write_text("# Report")
    (old / "push.pem").write_text("the key that browsers subscribed for")
    work = old / "workspaces" / "vigil" / "ann"
    (work / "sub" / ("deep" * 40)).mkdir(parents=True)
    (work / "sub" / ("deep" * 40) / "naïve name.txt").write_bytes(os.urandom(300_000))
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "key").symlink_to(old / "nkeys" / "admin.seed")
    (work / "away").symlink_to("/etc")
    os.mkfifo(work / "pipe")
    Path(os.fsdecode(bytes(work) + b"/\xff")).write_text("no name that can be written down")
    again = home / "workspaces" / "vigil" / "ann"
    (work.parent / "ann.marks.json").write_text("{}")
    (old / "mcp" / "notes").mkdir(parents=True)
    (old / "mcp" / "notes" / "graph.json").write_text("{}")
    if os.geteuid() == 0:  # the executor runs commands as somebody else
        os.chown(work / "run.sh", 61200, 61200)
    await save(await bare.bus("admin"), bare.settings, file)
    await restored(file, home)
    kept = [path.relative_to(old) for path in workspaces.files(old)]
    assert [path.relative_to(home) for path in workspaces.files(home)] == kept
    assert len(kept) == 4
    for path in kept:
        assert (home / path).read_bytes() == (old / path).read_bytes()
        assert (home / path).stat().st_uid == (old / path).stat().st_uid
    assert stat.S_IMODE((again / "run.sh").stat().st_mode) == 0o700
    assert {path.name for path in again.iterdir()} == {"sub", "run.sh"}
    assert (home / "skills" / "report.md").read_text() == "# Report"
    assert (home / "push.pem").read_text() == "the key that browsers subscribed for"


async def test_a_file_that_vanishes_meanwhile_is_no_error(
    bare: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: tools go on working while the backup is made."""
    work = bare.settings.workspaces / "vigil" / "ann"
    work.mkdir(parents=True)
    (work / "gone").write_text("x")
    (work / "swapped").write_text("x")
    (work / "stays").write_text("x")
    real = workspaces.files

    def then_gone(root: Path) -> Any:
        found = list(real(root))
        (work / "gone").unlink()
        (work / "swapped").unlink()
        (work / "swapped").symlink_to(bare.settings.credentials / "admin.seed")
        return found

    monkeypatch.setattr(workspaces, "files", then_gone)
    await save(await bare.bus("admin"), bare.settings, tmp_path / "b.tar")
    names = [part.name for part in Archive.open(tmp_path / "b.tar").manifest.parts]
    ours = [name.rpartition("/")[2] for name in names if "workspaces" in name]
    assert ours == ["stays"]


async def test_what_a_command_left_there_is_in_no_backups_way(
    bare: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: a folder that became a link, one without an end, a file that nobody may read."""
    work = bare.settings.workspaces / "vigil" / "ann"
    (work / "swapped").mkdir(parents=True)
    (work / "swapped" / "admin.seed").write_text("x")
    (work / "locked").write_text("x")
    (work / "locked").chmod(0)
    real = workspaces.files

    def then_swapped(root: Path) -> Any:
        found = list(real(root))
        (work / "swapped" / "admin.seed").unlink()
        (work / "swapped").rmdir()
        (work / "swapped").symlink_to(bare.settings.credentials)
        return found

    monkeypatch.setattr(workspaces, "files", then_swapped)
    with deep(work):
        await save(await bare.bus("admin"), bare.settings, tmp_path / "b.tar")
        assert stat.S_IMODE((work / "locked").stat().st_mode) == 0
    names = [part.name for part in Archive.open(tmp_path / "b.tar").manifest.parts]
    assert [name for name in names if "workspaces" in name] == ["home/workspaces/vigil/ann/locked"]
