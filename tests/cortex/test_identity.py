"""Identity files: made once, read when they change, never in the way of a conversation."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.cortex.thought import identity
from services.cortex.thought.identity import TEMPLATES, Identities
from vigil.errors import InvalidInput
from vigil.local.identity_files import CUT, FILE_BYTES_MAX, FILES


class HandClock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def identities(tmp_path: Path, clock: HandClock) -> Identities:
    return Identities(tmp_path / "agents", clock)


def test_first_contact_makes_the_files(identities: Identities, tmp_path: Path) -> None:
    """P-4, I-1: from the templates, and for the person's eyes only."""
    found = identities.load("vigil", "ann")
    folder = tmp_path / "agents" / "vigil"
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in FILES:
        assert (folder / name).read_bytes() == (TEMPLATES / name).read_bytes()
    assert "Your name is vigil." in found.identity
    assert "known here as ann" in found.user
    assert "{" not in found.soul + found.identity + found.role + found.user


def test_the_default_agent_exists_from_the_start(identities: Identities, tmp_path: Path) -> None:
    """P-4."""
    identities.ensure()
    assert (tmp_path / "agents" / "vigil" / "SOUL.md").exists()


def test_what_a_person_wrote_is_never_overwritten(identities: Identities, tmp_path: Path) -> None:
    """P-4: only what is missing is made; an emptied file stays empty."""
    folder = tmp_path / "agents" / "vigil"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("I am terse.")
    (folder / "USER.md").write_text("")
    found = identities.load("vigil", "ann")
    assert found.soul == "I am terse."
    assert found.user == ""
    assert found.role
    assert (folder / "SOUL.md").read_text() == "I am terse."


def test_several_replicas_make_the_files_once(tmp_path: Path) -> None:
    def load(_: int) -> object:
        return Identities(tmp_path, HandClock()).load("vigil", "ann")

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(load, range(64)))) == 1
    assert sorted(p.name for p in (tmp_path / "vigil").iterdir()) == sorted(FILES)


def test_one_agent_serves_several_people(identities: Identities) -> None:
    ann, bob = identities.load("vigil", "ann"), identities.load("vigil", "bob")
    assert "known here as bob" in bob.user
    assert "bob" not in ann.user


def test_a_change_is_seen_and_a_turn_reads_no_file(
    identities: Identities, clock: HandClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within two seconds of the injected clock, and by stat: unchanged files are not read."""
    before = identities.load("vigil", "ann")
    soul = tmp_path / "agents" / "vigil" / "SOUL.md"
    soul.write_text("New soul.")
    clock.seconds = 1.9
    assert identities.load("vigil", "ann") is before
    clock.seconds = 2.0
    assert identities.load("vigil", "ann").soul == "New soul."

    def refuse(path: Path) -> str:
        raise AssertionError(f"read {path}")

    monkeypatch.setattr(identity, "read_text", refuse)
    for seconds in (2.0, 3.0, 4.0, 10.0):
        clock.seconds = seconds
        assert identities.load("vigil", "ann").soul == "New soul."


def test_a_deleted_file_is_empty_text(
    identities: Identities, clock: HandClock, tmp_path: Path
) -> None:
    identities.load("vigil", "ann")
    (tmp_path / "agents" / "vigil" / "ROLE.md").unlink()
    clock.seconds = 5.0
    assert identities.load("vigil", "ann").role == ""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        (b"\xff\xfe\x00", "\ufffd\ufffd\x00"),
        (b"x" * FILE_BYTES_MAX, "x" * FILE_BYTES_MAX),
        (b"x" * (FILE_BYTES_MAX + 1), "x" * FILE_BYTES_MAX + CUT),
        (b"x" * 1_000_000, "x" * FILE_BYTES_MAX + CUT),
        (b"x" * (FILE_BYTES_MAX - 1) + "é".encode(), "x" * (FILE_BYTES_MAX - 1) + CUT),
        ("€".encode() * 20_000, "€" * (FILE_BYTES_MAX // 3) + CUT),
    ],
)
def test_any_bytes_become_bounded_text(
    identities: Identities, tmp_path: Path, content: bytes, expected: str
) -> None:
    folder = tmp_path / "agents" / "vigil"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_bytes(content)
    assert identities.load("vigil", "ann").soul == expected


def test_what_is_no_file_is_passed_over(identities: Identities, tmp_path: Path) -> None:
    """A pipe would block the event loop for good."""
    folder = tmp_path / "agents" / "vigil"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").mkdir()
    os.mkfifo(folder / "ROLE.md")
    (folder / "USER.md").symlink_to(folder / "nowhere")
    found = identities.load("vigil", "ann")
    assert (found.soul, found.role, found.user) == ("", "", "")
    assert found.identity


def test_a_home_that_can_not_be_written_costs_nothing_but_the_files(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("in the way")
    found = Identities(tmp_path / "agents", HandClock()).load("vigil", "ann")
    assert found.soul == ""


@pytest.mark.parametrize("agent", ["..", "../vigil", "a/b", "", "a\0b", "x" * 65, "é"])
def test_an_agent_is_a_name_not_a_path(identities: Identities, tmp_path: Path, agent: str) -> None:
    """S-2."""
    with pytest.raises(InvalidInput):
        identities.load(agent, "ann")
    with pytest.raises(InvalidInput):
        identities.ensure(agent)
    assert not (tmp_path / "agents").exists()


def test_memory_is_bounded(identities: Identities, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "AGENTS_MAX", 3)
    for n in range(8):
        assert "Your name is" in identities.load(f"agent-{n}", f"user-{n}").identity
        assert identities.load("agent-0", f"user-{n}").user
