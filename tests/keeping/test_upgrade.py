"""Homes of older versions: rehearsed, brought up to date, killed meanwhile, and put back (X-9)."""

from __future__ import annotations

import hashlib
import random
import shutil
import tarfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.homes.make import FOLDER
from tests.support import every_kind
from tests.support.cli import Cli
from tests.support.examples import repeats, up_to
from vigil.backup.rehearsal import rehearse
from vigil.contracts import codec, golden
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.upgrade import migrate
from vigil.upgrade.migrate import DECIDED, STAGED
from vigil.upgrade.records import record_at
from vigil.upgrade.steps import STEPS, CannotMigrate, Change, Files, UpgradeStep

RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
LATER = frozenset({"past"})
"""Kinds of records that came after the homes that are kept."""
OLD_FILE = "# mine\n[person]\ntimezone = 'Etc/UTC'\n"


def unpacked(release: str, home: Path) -> Path:
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        archive.extractall(home, filter="data")
    home.chmod(0o700)
    return home


def held(home: Path) -> dict[str, str]:
    """Return what each file of a home holds, but for what a start makes."""
    return {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.relative_to(home).parts[0] not in ("run", "logs")
    }


def test_every_record_is_known_by_its_place() -> None:
    """Whatever is stored: a rehearsal would leave it out."""
    for (name, _), one in zip(
        golden.records().items(), every_kind.of_contracts("ann", "Ann"), strict=True
    ):
        assert record_at(one.subject) == name.split(".")[0]


# ---------------------------------------------------------------- homes that were kept


@pytest.mark.repeated
@pytest.mark.parametrize("release", RELEASES)
def test_a_kept_home_is_read_and_goes_on_whenever_it_was_killed(
    tmp_path: Path, release: str
) -> None:
    """All that was there is there, after a kill of everything at a random time of the start; what
    a rehearsal finds, without changing anything; and back by a restore."""
    for seed in range(repeats(30, fast=1)):
        cli = Cli(unpacked(release, tmp_path / f"home-{seed}"))
        (cli.home / "vigil.toml").write_text(OLD_FILE)  # as from before the channel `push`
        if seed == 0:
            assert_rehearsed(cli)
        if is_long := seed == 1:
            cli("backup", str(tmp_path / "before.tar"))
        try:
            killed_somewhere(cli, random.Random(seed))
            was_taken = not migrate.pending(cli.home)
            told = cli("up", "--detach").stderr
            assert ("can be notified" in told) is not was_taken
            assert_all_is_there(cli, later=f"later {seed}")
            if seed == 0:  # while it runs, over its bus
                tried = cli.json("upgrade", "--check")
                assert (tried["steps"], tried["changed"]) == ([], [])
                assert tried["records"].keys() >= codec.VERSIONS.keys() - LATER
        finally:
            cli.end()
        assert_brought_up(cli.home)
        if is_long:
            assert_restored(tmp_path / "before.tar", Cli(tmp_path / "restored"))


def killed_somewhere(cli: Cli, rolled: random.Random) -> None:
    starting = cli.start("up")
    time.sleep(rolled.uniform(0.2, 2.0))
    starting.kill()  # what it started ends with it
    starting.wait(30)


def assert_rehearsed(cli: Cli) -> None:
    was = held(cli.home)
    tried = cli.json("upgrade", "--check")
    assert (tried["steps"], tried["changed"]) == (["push-channel"], ["vigil.toml"])
    assert tried["records"].keys() >= codec.VERSIONS.keys() - LATER
    assert held(cli.home) == was


def assert_all_is_there(cli: Cli, *, later: str) -> None:
    said = cli("send", "--thread", "t9", "what is my locker code?").stdout
    assert "4711" in said
    assert later in cli("send", "--thread", "t1", later).stdout
    headers = {"authorization": f"Bearer {(cli.home / 'token').read_text().strip()}"}
    with httpx2.Client(base_url=cli.run_state.url, headers=headers) as http:
        told = http.get("/api/sessions/me:vigil:t1").text
        assert http.get("/api/push").json()["public_key"]  # what the step added holds at once
        assert told.index("stretch") < told.rindex(later)
        for path, known in (
            ("/api/tasks", "Water the roses"), ("/api/goals", "Run ten kilometres"),
            ("/api/cron", "plan the week"), ("/api/memories", "4711"),
        ):  # fmt: skip
            assert known in http.get(path).text, path


def assert_brought_up(home: Path) -> None:
    """Each step was taken once; and back it's as it was."""
    assert not migrate.pending(home)
    text = (home / "vigil.toml").read_text()
    assert text.startswith(OLD_FILE)
    assert text.count("[channels.push]") == 1
    migrate.back(home)
    assert (home / "vigil.toml").read_text() == OLD_FILE
    assert len(migrate.pending(home)) == len(STEPS)


def assert_restored(file: Path, cli: Cli) -> None:
    cli("restore", str(file))
    try:
        cli("up", "--detach")
        assert_all_is_there(cli, later="restored")
    finally:
        cli.end()


# ---------------------------------------------------------------- steps


def _more(files: Files) -> Change:
    """What would show if it were taken twice."""
    return {"vigil.toml": files["vigil.toml"] + b"# more\n", "agents/new.md": b"new"}


def _moved(files: Files) -> Change:
    return {"agents/a.md": None, "agents/b.md": files["agents/a.md"] + files["agents/new.md"]}


def _refused(files: Files) -> Change:
    raise CannotMigrate("a.md is in Latin: translate it")


TWO = (
    UpgradeStep("more", "there is more", ("vigil.toml",), _more),
    UpgradeStep("moved", "a is b", ("agents/*.md",), _moved),
)


def small(home: Path) -> Path:
    (home / "agents").mkdir(parents=True)
    (home / "vigil.toml").write_text(OLD_FILE)
    (home / "agents" / "a.md").write_text("a")
    return home


def done(files: Mapping[str, str]) -> dict[str, str]:
    return {name: one for name, one in files.items() if not name.startswith("before-upgrade")}


@given(kills=st.lists(st.integers(0, 12), max_size=4))
@up_to(60)
def test_killed_between_any_writes_it_is_old_or_new_and_then_new(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int]
) -> None:
    home = small(tmp_path_factory.mktemp("home"))
    was = held(home)
    for number in kills:
        with suppress(Killed):
            migrate.bring_up(home, TWO, Killer(number))
        if (home / STAGED).exists() and not (home / DECIDED).exists():
            found = held(home)
            assert {name: found[name] for name in was} == was
    migrate.bring_up(home, TWO)
    assert (home / "vigil.toml").read_text() == OLD_FILE + "# more\n"
    assert {path.name for path in (home / "agents").iterdir()} == {"b.md", "new.md"}
    assert (home / "agents" / "b.md").read_text() == "anew"
    assert not (home / STAGED).exists()
    assert not (home / DECIDED).exists()
    assert migrate.bring_up(home, TWO) is None
    migrate.back(home)
    assert done(held(home)).keys() - {"format"} == was.keys()


class Killed(Exception):
    """As by SIGKILL: nothing is cleaned up."""


class Killer:
    """Ends it at the n-th point between two writes."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, point: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed(point)


async def test_a_step_that_fails_changes_nothing_and_is_named(tmp_path: Path) -> None:
    home = small(tmp_path / "home")
    was = held(home)
    steps = (*TWO[:1], UpgradeStep("translated", "all is English", ("agents/*",), _refused))
    broken = (
        *TWO[:1],
        UpgradeStep("broken", "-", ("agents/*",), lambda files: {"x": files["none"]}),
    )
    settings = config.load(home=home)
    for tried, told in ((steps, "translated .*: a.md is in Latin: translate"), (broken, "broken")):
        with pytest.raises(ConfigError, match=f"nothing was changed: the step {told}"):
            await rehearse(settings, tried)
        with pytest.raises(ConfigError, match="can't be taken"):
            migrate.bring_up(home, tried)
    assert held(home) == was
    assert (await rehearse(settings, TWO[:1])).changed == ("agents/new.md", "vigil.toml")
    assert held(home) == was


def test_a_file_that_cant_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text("[channels\n")
    with pytest.raises(ConfigError, match=r"push-channel .* correct it\. Until that is done"):
        migrate.bring_up(tmp_path)
    assert Cli(tmp_path)("upgrade", "--check", code=1).stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"vigil.toml", "run"}
    (tmp_path / "vigil.toml").write_text(f"a = {'[' * 5000}")
    with pytest.raises(ConfigError, match=r"push-channel .* correct it\."):
        migrate.bring_up(tmp_path)


def test_where_nothing_is_that_is_said_and_nothing_made(tmp_path: Path) -> None:
    """And a file that isn't there is named once."""
    home, lost = tmp_path / "home", tmp_path / "lost.tar"
    cli = Cli(home)
    for how in ((), ("--check",), ("--back",)):
        told = cli("upgrade", *how, code=1).stderr
        assert told == f"vigil: there is nothing in {home}: `vigil up` was never run there\n"
    told = cli("restore", str(lost), code=1).stderr
    assert told == f"vigil: {lost} can't be read: No such file or directory\n"
    assert not home.exists()


def test_what_a_person_made_of_a_kept_upgrade_is_no_other_one(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text("# Mine.\n")
    migrate.bring_up(tmp_path)
    shutil.copytree(tmp_path / "before-upgrade-1", tmp_path / "before-upgrade-1.old")
    migrate.back(tmp_path)
    assert (tmp_path / "vigil.toml").read_text() == "# Mine.\n"
    assert (tmp_path / "before-upgrade-1.old").is_dir()
