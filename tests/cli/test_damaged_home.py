"""A home that can't be written, and one whose log was cut: a sentence each, and no traceback."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.stack import running_broker
from vigil.broker.cut import cut_blocks, newest_blocks
from vigil.erasure import blocks
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey
from vigil.topology import SERVICES

KEY = SessionKey("ann", "vigil", "t1")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A home of which nothing can be changed; needs root on Linux."""
    made, home = tmp_path / "made", tmp_path / "home"
    for folder in (made / "run", home):
        folder.mkdir(parents=True, mode=0o700)
    (made / "run" / "up.lock").touch()
    (made / "token").write_text("pat_x\n")
    mounts = (["--bind", str(made), str(home)], ["-o", "remount,ro,bind", str(home)])
    if os.geteuid() != 0 or any(
        subprocess.run(["mount", *one], capture_output=True, check=False).returncode
        for one in mounts
    ):
        pytest.skip("mounting a folder as read-only needs root")
    yield home
    subprocess.run(["umount", str(home)], check=True)


def test_a_home_that_is_read_only_is_told_in_a_sentence(read_only: Path) -> None:
    """P-2, P-4: by whatever needs it; what only looks does that."""
    cli = Cli(read_only)
    for args in (("up",), ("up", "--detach")):
        done = cli(*args, code=1)
        assert "read-only" in done.stderr.lower()
        assert len(done.stderr.splitlines()) == 1, done.stderr
    for args in (("status",), ("token", "list")):
        done = cli(*args, code=3)
        assert len(done.stderr.splitlines()) == 1, done.stderr
    found = {check["name"]: check for check in cli.json("doctor", code=1)["checks"]}
    assert found["home"]["state"] == "fail"
    assert "read-only" in found["home"]["advice"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose log has some records; nothing runs in it."""
    home = tmp_path_factory.mktemp("cut") / "home"

    async def fill() -> None:
        async with running_broker(home, Nats()) as broker:
            admin = await broker.admin()
            for n in range(12):
                await admin.publish(KEY.in_user, b"x" * (n % 5), {"n": "x" * n} if n % 2 else None)
            await admin.close()

    asyncio.run(fill())
    return home


def block_of(home: Path) -> Path:
    """Return the block that has what was said."""
    (found,) = (
        one
        for one in newest_blocks(home / "nats" / "data")
        if one.parts[-3].startswith("SESSIONS") and one.stat().st_size
    )
    return found


def test_a_block_is_whole_where_a_record_ends_and_nowhere_else(
    stored: Path, tmp_path: Path
) -> None:
    """X-5: wherever it was cut."""
    whole = block_of(stored)
    data = whole.read_bytes()
    ends = {record.offset + len(record.data) for record in blocks.records(whole)}
    assert max(ends) == len(data)
    assert list(cut_blocks(newest_blocks(stored / "nats" / "data"))) == []
    path = tmp_path / "1.blk"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        assert (not list(cut_blocks(iter([path])))) == (size in ends), size


def test_a_log_that_was_cut_is_told(stored: Path) -> None:
    """X-5, P-4: the broker takes what is left for all there was, and says nothing."""
    block, cli = block_of(stored), Cli(stored)
    os.truncate(block, block.stat().st_size // 2)
    found = {check["name"]: check for check in cli.json("doctor", code=None)["checks"]}
    assert found["log"]["state"] == "fail"
    assert f"{block} ends in the middle of a record" in found["log"]["found"]
    without = [f"--without={name}" for name in SERVICES if name != "delivery"]
    try:
        done = cli("up", "--detach", *without)
        assert f"{block} ends in the middle of a record" in done.stderr
        assert "vigil restore" in done.stderr
    finally:
        cli.end()
