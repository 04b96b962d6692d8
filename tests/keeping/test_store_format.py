"""A home that a newer Vigil used is refused by an older one, in a line (SPEC X-9)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import json, structs

from tests.support.stack import Stack
from vigil.backup import backup
from vigil.backup.archive import Archive
from vigil.errors import ConfigError
from vigil.local.home import check_whole
from vigil.local.up import Supervisor
from vigil.upgrade import migrate, store_format
from vigil.upgrade.store_format import FORMAT, StoreFormat

NEWER = json.encode(StoreFormat(format=FORMAT + 1, vigil="9.1.0"))


async def test_up_refuses_a_newer_home_and_changes_nothing(bare: Stack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / store_format.FILE).write_bytes(NEWER)
    up = Supervisor(structs.replace(bare.settings, home=home), 1)
    with pytest.raises(ConfigError, match=r"Vigil 9\.1\.0.*install that version") as refused:
        await up.run(lambda run: None)
    assert "\n" not in str(refused.value)
    assert {path.name for path in home.iterdir()} <= {store_format.FILE, "run"}
    assert (home / store_format.FILE).read_bytes() == NEWER


async def test_a_backup_of_a_newer_home_is_refused_before_anything_is_written(
    bare: Stack, tmp_path: Path
) -> None:
    """And one of ours brings its format along."""
    admin, file = await bare.bus("admin"), tmp_path / "b.tar"
    migrate.bring_up(bare.settings.home)
    await backup.save(admin, bare.settings, file, datetime.now(UTC), lambda step, done: None)
    backup.write_files(Archive.open(file), tmp_path / "same")
    assert store_format.check_home(tmp_path / "same") == store_format.check_home(bare.settings.home)
    (bare.settings.home / store_format.FILE).write_bytes(NEWER)
    newer = tmp_path / "newer.tar"
    await backup.save(admin, bare.settings, newer, datetime.now(UTC), lambda step, done: None)
    with pytest.raises(ConfigError, match=r"the backup was last used by Vigil 9\.1\.0"):
        backup.write_files(Archive.open(newer), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_older_home_is_noted_and_a_damaged_note_is_told(tmp_path: Path) -> None:
    assert store_format.check_home(tmp_path) is None  # one from before has no such file
    migrate.bring_up(tmp_path)
    found = store_format.check_home(tmp_path)
    assert found is not None
    assert found.format == FORMAT
    check_whole(tmp_path)
    (tmp_path / store_format.FILE).write_bytes(b"")
    with pytest.raises(ConfigError, match="can't be read"):
        check_whole(tmp_path)
