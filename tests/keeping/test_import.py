"""What a person took along is taken in again: once, by its standing, and nobody else's (X-8)."""

from __future__ import annotations

import hashlib
import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support import every_kind, pictures
from tests.support.stack import Stack
from vigil.attachments import store
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.contracts import (
    Change,
    MemoryForgotten,
    MemorySaved,
    TimetableRow,
    decode_memory,
    encode,
)
from vigil.contracts.board import AfterSchedule, BoardGoal, BoardPreference, CronWork, EverySchedule
from vigil.contracts.memories import Memory
from vigil.erasure.erase import Eraser
from vigil.erasure.theirs import filters_of
from vigil.marks import erasure
from vigil.portable.bundle import LINE_BYTES_MAX, Bundle, BundleError
from vigil.portable.export import export
from vigil.portable.importer import Importer, ImportReport
from vigil.portable.places import TAKEN
from vigil.subjects import Scope

ANN, BOB = "ann", "bob"
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
KINDS: dict[str, Any] = {"task": TASKS, "goal": GOALS, "preference": PREFERENCES, "row": ROWS}


async def with_a_past(bus: Bus) -> None:
    """Leave one of every kind of two people; and of Ann two rows that go on, the one before which
    the other stands, and a memory of her own."""
    for user in (BOB, ANN):
        await every_kind.store(bus, user, f"{user}'s", datetime.now(UTC), times=1)
    rows, mine = KeptBoard(bus, ROWS), Scope("*", ANN)
    first = row("a" * 32, "first")
    later = msgspec.structs.replace(row("b" * 32, "later"), schedule=AfterSchedule(row="a" * 32))
    for one in (first, later, msgspec.structs.replace(first, jitter_s=1)):
        found = await rows.find([Scope("vigil", ANN)], one.id)
        if found is None:
            await rows.create(partial(made, one), mine, Change(by=ANN), NOW)
        else:
            await rows.change(found, one, Change(by=ANN), NOW)
    parent = BoardGoal(
        id="c" * 32,
        owner=ANN,
        agent="vigil",
        description="Be well",
        check_interval_s=3600,
        created_at=NOW,
        moved_at=NOW,
    )
    await KeptBoard(bus, GOALS).replace(0, parent, Change(by=ANN), NOW)
    liked = BoardPreference(
        id="e" * 32,
        owner=ANN,
        agent="vigil",
        category="communication",
        key="tone",
        value="dry",
        confidence=0.9,
        last_confirmed_at=NOW,
        created_at=NOW,
    )
    await KeptBoard(bus, PREFERENCES).replace(0, liked, Change(by=ANN), NOW)
    saved = MemorySaved(
        id="own",
        agent="vigil",
        owner=ANN,
        at=NOW,
        by=f"user:{ANN}",
        memory=Memory(id="9" * 32, content="Has a cat", created_at=NOW),
    )
    await bus.publish(Scope("vigil", ANN).record("save"), encode(saved))


async def take_in(bus: Bus, stack: Stack, path: Path, to: str, *, trusted: bool) -> ImportReport:
    bundle = Bundle(path)
    importer = Importer(bus, stack.settings.config, bundle, to, NOW, is_trusted=trusted)
    return await importer.run()


async def memories(bus: Bus, user: str) -> list[Any]:
    found = await bus.read("MEMORIES", [Scope("*", user).everything])
    return [decode_memory(one.data) for one in found]


async def board(bus: Bus, user: str) -> dict[str, Any]:
    """Return what a person has on the board, by id."""
    found: dict[str, Any] = {}
    for kind in KINDS.values():
        for one in await KeptBoard(bus, kind).all(Scope("*", user)):
            found[one.entity.id] = one.entity
    return found


async def everything(bus: Bus, user: str) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for name in TAKEN.keys() & filters_of(user).keys():
        for stream in (await bus.layout()).streams(name):
            for one in await bus.read(stream, filters_of(user)[name]):
                found.setdefault(one.subject, []).append(one.data)
    return {at: all_[-1:] if at.startswith("board.") else all_ for at, all_ in found.items()}


async def test_exported_erased_and_imported_a_person_has_what_they_had(
    bare: Stack, tmp_path: Path
) -> None:
    """X-8: with its standing, as somebody vouches for it; nobody else's changes. The same again
    adds nothing."""
    admin = await bare.bus("admin")
    await with_a_past(admin)
    of_bob, had = await everything(admin, BOB), await board(admin, ANN)
    known = await memories(admin, ANN)
    await export(admin, bare.settings, ANN, tmp_path / "ann.zip", NOW)
    eraser = Eraser(admin, ANN, SystemClock(), lambda step, done: None)
    mark = await eraser.run(quiet_s=0)
    await erasure.end(admin, ANN, mark, NOW)
    assert await memories(admin, ANN) == []
    report = await take_in(admin, bare, tmp_path / "ann.zip", ANN, trusted=True)
    assert [one.id for one in await memories(admin, ANN)] == [one.id for one in known]
    assert [one for one in await memories(admin, ANN) if isinstance(one, MemorySaved)] == [
        one for one in known if isinstance(one, MemorySaved)
    ]
    back = await board(admin, ANN)
    for id_ in ("a" * 32, "b" * 32):
        assert back[id_] == msgspec.structs.replace(had[id_], scheduled_at=NOW)
    removed = {id_ for id_, one in had.items() if getattr(one, "is_removed", False)}
    assert had.keys() - back.keys() == removed
    assert all(one.is_by_rule for one in report.refused), report.refused
    # What can't be read here, of a newer version say, ends no import.
    await admin.publish(Scope("vigil", ANN).record("save"), b'{"v": 99}')
    again = await take_in(admin, bare, tmp_path / "ann.zip", ANN, trusted=True)
    assert again.taken == {}
    assert again.there == report.taken
    assert again.refused == report.refused
    assert await everything(admin, BOB) == of_bob


async def test_what_nobody_vouches_for_is_from_outside(bare: Stack, tmp_path: Path) -> None:
    """X-3: given to another person, under ids of their own; nothing begins by itself."""
    admin = await bare.bus("admin")
    await with_a_past(admin)
    await export(admin, bare.settings, ANN, tmp_path / "ann", NOW)
    of_ann = await everything(admin, ANN)
    report = await take_in(admin, bare, tmp_path / "ann", "zoe", trusted=False)
    saved = [one for one in await memories(admin, "zoe") if isinstance(one, MemorySaved)]
    assert {one.memory.content for one in saved} >= {"Has a cat"}
    assert all(one.memory.is_tainted and one.by == "user:zoe" for one in saved)
    assert {one.memory.id for one in saved}.isdisjoint(
        one.memory.id for one in await memories(admin, ANN) if isinstance(one, MemorySaved)
    )
    taken = (await board(admin, "zoe")).values()
    assert {str(one.__struct_config__.tag) for one in taken} >= {"row", "goal"}
    for one in taken:
        assert not getattr(one, "is_ordered", False)
        assert not getattr(one, "is_enabled", False)
        assert getattr(one, "is_tainted", True)
    assert any("--trusted" in one.reason for one in report.refused)
    assert await everything(admin, ANN) == of_ann


async def test_nothing_happens_to_what_is_there(bare: Stack, tmp_path: Path) -> None:
    """X-3: a file that nobody vouches for forgets no memory that was here, by whatever id."""
    admin = await bare.bus("admin")
    await with_a_past(admin)
    forgotten = MemoryForgotten(
        id="f1", agent="vigil", owner=ANN, at=NOW, by=f"user:{ANN}", memory_ids=("9" * 32,)
    )
    await export(admin, bare.settings, ANN, tmp_path / "before", NOW)
    await admin.publish(Scope("vigil", ANN).record("forget"), encode(forgotten))
    await export(admin, bare.settings, ANN, tmp_path / "ann", NOW)
    before = {one.memory.id for one in await memories(admin, ANN) if isinstance(one, MemorySaved)}
    await take_in(admin, bare, tmp_path / "ann", "zoe", trusted=False)
    gone = [one for one in await memories(admin, "zoe") if isinstance(one, MemoryForgotten)]
    assert gone
    assert before.isdisjoint(id_ for one in gone for id_ in one.memory_ids)
    assert "Has a cat" in (tmp_path / "before" / "memories.md").read_text()
    assert "Has a cat" not in (tmp_path / "ann" / "memories.md").read_text()


async def test_a_line_that_cant_be_taken_is_told_by_its_number(bare: Stack, tmp_path: Path) -> None:
    """The others are taken. What holds authority is never."""
    admin = await bare.bus("admin")
    await with_a_past(admin)
    await export(admin, bare.settings, ANN, tmp_path / "ann", NOW)
    shutil.copytree(tmp_path / "ann", tmp_path / "edited")
    path = tmp_path / "edited" / "records" / "MEMORIES.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    odd = (
        b'{"subject": 1}', b"no",
        b'{"subject": "s", "record": {"id": "\xff"}}',
        b'{"subject": "s", "record": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"subject": "s", "record": ' + b'{"a":' * 700 + b"1" + b"}" * 700 + b"}",
        b'{"subject": "s", "record": {"memory": {}}}',
        b'{"subject": "s", "record": {"memory": {"id": []}}}',
        b'{"subject": "s", "record": 1}',
    )  # fmt: skip
    path.write_bytes(lines[0] + b"\n".join(odd) + b"\n" + b"".join(lines[1:]))
    pixel = pictures.png(1, 1)
    hash_, text_hash = (hashlib.sha256(one).hexdigest() for one in (pixel, b"a\nb\n"))
    files = [
        {"hash": hash_, "name": "x.png", "type": "text/html", "size": 1},  # it says what it isn't
        {"hash": "../manifest", "name": "x.png", "type": "image/png", "size": 1},
        {"hash": "0" * 64, "name": "x.png", "type": "image/png", "size": 1},  # it isn't there
        {"hash": text_hash, "name": "x.md", "type": "text/plain", "size": 1, "shown_bytes": 1},
    ]
    (tmp_path / "edited" / "files").mkdir(exist_ok=True)
    (tmp_path / "edited" / "files" / hash_).write_bytes(pixel)
    (tmp_path / "edited" / "files" / text_hash).write_bytes(b"a\nb\n")
    of_files = b"".join(msgspec.json.encode(one) + b"\n" for one in files)
    (tmp_path / "edited" / "records" / "FILES.jsonl").write_bytes(of_files)
    signed(tmp_path / "edited", f"files/{hash_}", f"files/{text_hash}")
    report = await take_in(admin, bare, tmp_path / "edited", "zoe", trusted=True)
    told = [one.line for one in report.refused if one.part == "records/MEMORIES.jsonl"]
    assert set(range(2, 10)) <= set(told)
    of_files = [one for one in report.refused if one.part == "records/FILES.jsonl"]
    assert [one.line for one in of_files] == [2, 3]
    taken = await store.find(admin, "zoe", hash_)
    assert taken is not None
    assert (taken.type, taken.size) == ("image/png", len(pixel))
    text = await store.find(admin, "zoe", text_hash)
    assert text is not None
    assert (text.type, text.size, text.shown_bytes) == ("text/plain", 4, 7), "whatever it claims"
    assert "Has a cat" in {
        one.memory.content for one in await memories(admin, "zoe") if isinstance(one, MemorySaved)
    }
    grants = await admin.read("BOARD", ["board.*.zoe.grant.*", "board.*.zoe.approval.*"])
    assert grants == []


def signed(folder: Path, *more: str) -> None:
    """Let a manifest say what its parts are now, and others beside."""
    manifest = folder / "manifest.json"
    was = msgspec.json.decode(manifest.read_bytes())
    was["parts"] += [{"name": name, "count": 1} for name in more]
    for part in was["parts"]:
        data = (folder / part["name"]).read_bytes()
        part["sha256"], part["bytes"] = hashlib.sha256(data).hexdigest(), len(data)
    manifest.write_bytes(msgspec.json.encode(was))


def a_bundle(folder: Path, **parts: bytes) -> Path:
    """Write an export by hand."""
    (folder / "records").mkdir(parents=True)
    for name, data in parts.items():
        (folder / "records" / f"{name}.jsonl").write_bytes(data)
    manifest = {"format": 1, "vigil": "1", "user": ANN, "made_at": NOW, "left_out": {}, "parts": []}
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    signed(folder, *(f"records/{name}.jsonl" for name in parts))
    return folder


def zipped(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "zip", folder))


def test_what_is_no_whole_export_is_refused_in_words(tmp_path: Path) -> None:
    """Nothing of it is believed before: not its sizes, not its links, not that it ends."""
    whole = a_bundle(tmp_path / "whole", MEMORIES=b'{"subject": "s", "record": 1}\n' * 500)
    Bundle(whole).check()
    data = zipped(whole).read_bytes()
    Bundle(tmp_path / "whole.zip").check()
    at = data.index(b"records/MEMORIES.jsonl") + len("records/MEMORIES.jsonl") + 4
    damaged = {
        "cut": data[: len(data) // 2],
        "changed": data[:at] + bytes(20) + data[at + 20 :],
        "locked": data.replace(
            b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
        ),
        "text": b"Dear Sir",
    }
    for name, changed in damaged.items():
        assert changed != data
        (tmp_path / f"{name}.zip").write_bytes(changed)
        with pytest.raises(BundleError, match="not whole"):
            Bundle(tmp_path / f"{name}.zip").check()
    for name, told in {"utf": b"\xff", "deep": b"[" * 5000, "empty": b""}.items():
        (a_bundle(tmp_path / name) / "manifest.json").write_bytes(b'{"format": ' + told)
        with pytest.raises(BundleError, match="not whole"):
            Bundle(tmp_path / name)
    large = a_bundle(tmp_path / "large", MEMORIES=b"1" * (LINE_BYTES_MAX + 1))
    with pytest.raises(BundleError, match="a line that is too long"):
        Bundle(zipped(large)).check()
    more = a_bundle(tmp_path / "more", MEMORIES=b"1\n")
    (more / "records" / "MEMORIES.jsonl").write_bytes(b"1\n" * 100)
    with pytest.raises(BundleError, match="larger than it's said to be"):
        Bundle(more).check()
    away = a_bundle(tmp_path / "away", MEMORIES=b"1\n")
    for target in (whole / "manifest.json", Path("/dev/zero")):
        (away / "records" / "MEMORIES.jsonl").unlink()
        (away / "records" / "MEMORIES.jsonl").symlink_to(target)
        with pytest.raises(BundleError, match="leads out"):
            Bundle(away).check()
    pipe = a_bundle(tmp_path / "pipe", MEMORIES=b"1\n")
    (pipe / "records" / "MEMORIES.jsonl").unlink()
    os.mkfifo(pipe / "records" / "MEMORIES.jsonl")
    with pytest.raises(BundleError, match="is no file"):
        Bundle(pipe).check()


def made(one: TimetableRow, _: list[TimetableRow]) -> TimetableRow:
    return one


def row(id_: str, name: str) -> TimetableRow:
    return TimetableRow(
        id=id_,
        owner=ANN,
        agent="vigil",
        name=name,
        work=CronWork(prompt="What is new?"),
        schedule=EverySchedule(interval_s=900),
        is_ordered=True,
        made_at=NOW - timedelta(days=9),
        scheduled_at=NOW - timedelta(days=9),
    )
