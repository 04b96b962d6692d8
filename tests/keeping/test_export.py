"""What a person has is exported whole, and nobody else's (SPEC X-8, X-9)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import every_kind
from tests.support.goal_records import goal_of, lesson_of
from tests.support.stack import Stack
from tests.support.timetable_records import ROW
from vigil.attachments import store
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.bus.bus import Bus
from vigil.contracts import Change, FollowUp, Memory, MemorySaved, State, Turn, encode
from vigil.contracts.events import Attachment
from vigil.erasure.theirs import filters_of
from vigil.portable import export
from vigil.portable.bundle import Bundle, BundleError
from vigil.portable.importer import Importer
from vigil.portable.places import LEFT_OUT, TAKEN
from vigil.preferences.check import id_of
from vigil.subjects import Scope, SessionKey

USER, TEXT, OTHER = "CANARYuser", "CANARYtext", "bob"
NOW = datetime(2026, 11, 28, tzinfo=UTC)
DAY = timedelta(days=1)


def test_each_place_that_an_erasing_knows_is_taken_or_said_to_be_left() -> None:
    """X-8: a stream that holds something of a person can't be forgotten here."""
    assert TAKEN.keys() | LEFT_OUT.keys() == filters_of(USER).keys() | {"KV_CONFIG"}
    assert not TAKEN.keys() & LEFT_OUT.keys()


async def stored(bus: Bus, user: str) -> dict[str, set[str]]:
    """Return the subjects of what a person has, by stream: those of JSON records that are taken."""
    found: dict[str, set[str]] = {}
    layout = await bus.layout()
    for name, filters in filters_of(user).items():
        for stream in layout.streams(name):
            subjects = {m.subject for m in await bus.read(stream, filters)}
            found.setdefault(name, set()).update(subjects)
    return {name: found[name] for name in TAKEN if name in found and name != "FILES"}


@pytest.mark.parametrize("form", ["folder", "file.zip"])
async def test_all_that_a_person_has_is_there_and_nobody_elses(
    bare: Stack, tmp_path: Path, form: str
) -> None:
    """X-8: one of every kind of two people; of one, each record is a line, and no byte of the
    other."""
    admin = await bare.bus("admin")
    for user, text in ((OTHER, "HERSwords"), (USER, TEXT)):
        await every_kind.store(admin, user, text, datetime.now(UTC), times=1)
    for owner, file in ((OTHER, "HERSfile"), (USER, "mine")):
        folder = bare.settings.home / "workspaces" / "vigil" / owner
        folder.mkdir(parents=True)
        (folder / file).write_text(file)
    for user, data in ((OTHER, b"HERSimage"), (USER, b"image")):
        hash_ = hashlib.sha256(data).hexdigest()
        about = Attachment(hash=hash_, name="x.png", type="image/png", size=len(data))
        await store.upload(admin, user, about, data)
        await store.keep(admin, user, hash_)
    path = tmp_path / form
    manifest = await export.export(admin, bare.settings, USER, path, NOW)
    bundle = Bundle(path)
    bundle.check()
    assert bundle.manifest == manifest
    for name, subjects in (await stored(admin, USER)).items():
        lines = [msgspec.json.decode(line) for line in bundle.lines(f"records/{name}.jsonl")]
        assert {one["subject"] for one in lines} == subjects, name
    everything = {part.name: bundle.read(part.name, part.bytes) for part in manifest.parts}
    for name, data in everything.items():
        assert b"HERS" not in data, name
        assert b"bob" not in data, name
    assert everything[f"workspaces/vigil/{USER}/mine"] == b"mine"
    assert everything[f"files/{hash_}"] == b"image"
    assert b"hi" in everything["conversations/vigil/t1.md"]
    assert TEXT.encode() in everything["records/KV_CONFIG.jsonl"]
    assert {"tasks.md", "goals.md", "preferences.md", "rows.md"} <= everything.keys()
    assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


async def test_pages_say_what_holds_and_the_manifest_counts_it(bare: Stack, tmp_path: Path) -> None:
    """X-8: a correction isn't told as a wish, a memory has the day that it tells of, a row says
    when it is due, and what follows from the configuration is nobody's row."""
    admin, whose = await bare.bus("admin"), Scope("vigil", "ann")
    for description in ("Be well", "Learn Greek"):
        goal = goal_of(id=f"{len(description):032}", description=description)
        await KeptBoard(admin, GOALS).replace(0, goal, Change(by="ann"), NOW)
    for key, is_negative in (("answers", False), ("auto_merge", True)):
        taught = lesson_of(True, id=id_of(whose, key), key=key, is_negative=is_negative)
        await KeptBoard(admin, PREFERENCES).replace(0, taught, Change(by="ann"), NOW)
    for number, name in enumerate(("briefing", "bulletin")):
        maker = "system" if number else "person"
        there = {"is_enabled": True, "is_removed": False, "id": f"{number:032}"}
        row = replace(ROW, name=name, made_by=maker, **there)
        await KeptBoard(admin, ROWS).replace(0, row, Change(by="ann"), NOW)
    boat = Memory(id="9" * 32, content="Marigold", created_at=NOW, occurred_at=NOW - 8 * DAY)
    saved = MemorySaved(id="own", agent="vigil", owner="ann", at=NOW, by="user:ann", memory=boat)
    await admin.publish(whose.record("save"), encode(saved))
    manifest = await export.export(admin, bare.settings, "ann", tmp_path / "mine", NOW)
    pages = {one.name: one for one in manifest.parts if one.name.endswith(".md")}
    read = {name: (tmp_path / "mine" / name).read_text() for name in pages}
    assert read["memories.md"] == "* Marigold (fact, 2026-11-20)\n"
    assert read["preferences.md"] == "# Preferences\n\n* answers = true\n* auto_merge = not true\n"
    assert read["goals.md"] == "# Goals\n\n* Be well\n* Learn Greek\n"
    assert read["rows.md"] == (
        "# Rows\n\n* briefing (At 09:00 on Monday through Friday (Europe/Berlin))\n\n"
        "  What is new in the tracker since yesterday?\n"
    )
    assert {name: one.count for name, one in pages.items()} == {
        "memories.md": 1, "preferences.md": 2, "goals.md": 2, "rows.md": 1
    }  # fmt: skip


async def test_what_was_changed_since_is_noticed(bare: Stack, tmp_path: Path) -> None:
    admin = await bare.bus("admin")
    await every_kind.store(admin, USER, TEXT, datetime.now(UTC), times=1)
    await export.export(admin, bare.settings, USER, tmp_path / "mine", NOW)
    with (tmp_path / "mine" / "records" / "SESSIONS.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(BundleError, match=r"records/SESSIONS\.jsonl"):
        Bundle(tmp_path / "mine").check()
    (tmp_path / "none").mkdir()
    with pytest.raises(BundleError, match="no export"):
        Bundle(tmp_path / "none")


async def test_reminders_that_are_open_are_to_read_and_an_import_names_them(
    bare: Stack, tmp_path: Path
) -> None:
    """X-8: who moves has them to ask for; one that came due, or was an agent's own idea, isn't."""
    admin = await bare.bus("admin")
    mum = FollowUp(generation=1, fire_at=NOW + DAY, reason="r", message="Call Mum", keep=True)
    pill = replace(mum, fire_at=NOW, message=None, reason="take the pill")
    came_due, idea = replace(mum, message="Tea"), replace(mum, keep=False, message="How was it?")
    for thread, turns in {
        "t1": ({"a": mum, "b": came_due}, {"a": mum, "c": idea}),
        "t2": ({"a": pill},),
    }.items():
        key = SessionKey("ann", "vigil", thread)
        for number, follow_ups in enumerate(turns, 1):
            state = State(turns=number, follow_ups=follow_ups)
            turn = Turn(id=f"t{number}", session_key=str(key), ordinal=number, event=None,
                        outcome="answered", state=state, created_at=NOW)  # fmt: skip
            await admin.publish(key.turn, encode(turn))
    await export.export(admin, bare.settings, "ann", tmp_path / "mine", NOW)
    assert (tmp_path / "mine" / "reminders.md").read_text() == (
        "# Reminders\n\n"
        f"* {NOW:%Y-%m-%d %H:%M} UTC: take the pill (in t2)\n"
        f"* {NOW + DAY:%Y-%m-%d %H:%M} UTC: Call Mum (in t1)\n"
    )
    bundle = Bundle(tmp_path / "mine")
    importer = Importer(admin, bare.settings.config, bundle, "eve", NOW, is_trusted=True)
    report = await importer.run()
    assert report.left["reminders.md"] == "is what was set there: ask for it here"
