"""What a person has is exported whole, and nobody else's (SPEC X-8, X-9)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.support import every_kind
from tests.support.stack import Stack
from vigil.attachments import store
from vigil.bus.bus import Bus
from vigil.contracts.events import Attachment
from vigil.erasure.theirs import filters_of
from vigil.portable import export
from vigil.portable.bundle import Bundle, BundleError
from vigil.portable.places import LEFT_OUT, TAKEN

USER, TEXT, OTHER = "CANARYuser", "CANARYtext", "bob"
NOW = datetime(2026, 11, 28, tzinfo=UTC)


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
