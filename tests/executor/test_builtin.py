"""The executor's own tools: what is offered, and a shell in a workspace (P-6, X-1, X-3)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from services.executor.builtin import Builtin
from services.executor.sandbox.choice import why_not
from services.executor.tools.declaration import declared
from tests.support.boxes import ANY_KIND, kind_of
from tests.support.hands import NO_SANDBOX, Hands, call_of, choice_of, settings_of
from tests.support.stack import Stack
from vigil.clock import SystemClock
from vigil.errors import InvalidInput
from vigil.grants.there import SOMETIMES
from vigil.settings import own
from vigil.settings.config import Config
from vigil.texts import excerpt


@pytest.fixture(params=ANY_KIND)
async def hands(request: pytest.FixtureRequest, tmp_path: Path) -> Hands:
    kind = await kind_of(request.param)
    return Hands(tmp_path, choice_of(kind), shell_timeout_s=10.0)


PRIMES = """
found = []
n = 2
while len(found) < 20:
    if all(n % p for p in found):
        found.append(n)
    n += 1
print(found)
"""


async def test_write_a_script_run_it_and_read_what_it_made(hands: Hands) -> None:
    """Issue 5: the first 20 primes."""
    await hands.call("write_file", path="primes.py", content=PRIMES)
    told = await hands.call("shell", command="python3 primes.py | tee primes.txt")
    assert told.content.endswith("61, 67, 71]\n")
    assert (told.is_error, told.is_tainted) == (False, False)
    assert (await hands.call("read_file", path="primes.txt")).content == told.content
    assert not (hands.workspace / "made").exists()
    await hands.call("shell", command="mkdir d; echo 1 > d/f")
    await hands.call("write_file", path="d/f", content="2")
    assert (await hands.call("shell", command="echo 3 >> d/f; cat d/f")).content == "23\n"


async def test_a_long_file_is_read_in_pieces_that_are_shown_whole(hands: Hands) -> None:
    """X-1: how to go on stood at the end of a piece of 64 KiB, of which a model saw a quarter."""
    text = "".join(f"zeile {n} äöü\n" for n in range(2000))
    await hands.call("write_file", path="long", content=text)
    read = ""
    offset: int | None = 0
    while offset is not None:
        told = (await hands.call("read_file", path="long", offset=offset)).content
        assert excerpt.in_characters(told, excerpt.SHOWN_LENGTH_MAX) == told
        piece, mark, rest = told.rpartition("\n[")
        read += piece if mark else told
        offset = int(rest.rpartition("=")[2][:-1]) if mark else None
    assert read == text


async def test_how_a_command_ended_is_said(hands: Hands) -> None:
    failed = await hands.call("shell", command="echo no >&2; exit 7")
    assert (failed.content, failed.is_error) == ("no\n[exit code 7]", True)
    silent = await hands.call("shell", command="true")
    assert (silent.content, silent.is_error) == ("[it wrote nothing, exit code 0]", False)
    late = await hands.call("shell", command="echo begun; sleep 60", timeout_s=2)
    assert (late.content, late.is_error) == (
        "begun\n[ended after 2 s: it took too long]", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "left", [{"f_bavail": 100 * 2**20 // 4096}, {"f_files": 10**6, "f_favail": 1000}]
)
async def test_a_command_leaves_room_for_messages_and_for_files(
    hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: dict[str, int]
) -> None:
    """S10: before the gateway has to refuse everybody; and many small files fill a disk, too."""
    room = {"f_bavail": 10**9, "f_frsize": 4096, "f_files": 0, "f_favail": 0}
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**(room | left)))
    hands = Hands(tmp_path, hands.source.choice, room_bytes=64 * 2**20)
    told = await hands.call("shell", command="echo x > file")
    assert "nothing could be written: the disk was almost full" in told.content
    assert (hands.workspace / "file").stat().st_size == 0


async def test_a_command_that_no_line_can_hold(hands: Hands) -> None:
    """X-6: the model can correct that."""
    with pytest.raises(InvalidInput):
        await hands.call("shell", command="echo a\0b")


async def test_a_command_that_ran_is_never_run_again(hands: Hands) -> None:
    """X-1: whatever goes wrong afterwards; nobody knows what it saw, so it counts as all."""
    lock = hands.workspace.parent / "ann.lock"
    task = asyncio.ensure_future(
        hands.call("shell", command="echo ran >> runs; until [ -e go ]; do sleep 0.01; done")
    )
    async with asyncio.timeout(10):
        while not (hands.workspace / "runs").exists():
            await asyncio.sleep(0.01)
    lock.unlink()
    lock.mkdir()
    (hands.workspace / "go").touch()
    told = await task
    assert (told.is_error, told.is_tainted) == (False, True)


async def test_a_command_may_read_what_is_marked_and_is_marked_then(hands: Hands) -> None:
    """X-3: copying does not wash."""
    await hands.call("write_file", path="page", content="evil", is_tainted=True)
    assert (await hands.call("shell", command="cp page copy; echo")).is_tainted
    assert (await hands.call("read_file", path="copy")).is_tainted


async def test_a_tainted_command_marks_its_workspace(hands: Hands) -> None:
    """X-3."""
    told = await hands.call("shell", command="echo evil > made", is_tainted=True)
    assert told.is_tainted
    assert (await hands.call("read_file", path="made")).is_tainted
    assert (await hands.call("shell", command="cat made")).is_tainted


async def test_a_page_that_is_written_beside_a_command_taints_what_it_tells(hands: Hands) -> None:
    """X-3: the two run at the same time."""
    watching = "while [ ! -e page ]; do sleep 0.05; done; cp page copy; cat copy"
    task = asyncio.ensure_future(hands.call("shell", command=f"touch began; {watching}"))
    async with asyncio.timeout(10):
        while not (hands.workspace / "began").exists():
            await asyncio.sleep(0.01)
    await hands.call("write_file", path="page", content="evil", is_tainted=True)
    told = await task
    assert (told.content, told.is_tainted) == ("evil", True)
    assert (await hands.call("read_file", path="copy")).is_tainted


async def test_a_granted_network_taints(tmp_path: Path) -> None:
    """X-3: what comes over it comes from outside."""
    if reason := await why_not("bubblewrap"):
        pytest.skip(reason)
    hands = Hands(tmp_path, choice_of("bubblewrap"), network=True)
    assert (await hands.call("shell", command="echo")).is_tainted


# ---------------------------------------------------------------- what is offered


async def test_without_a_sandbox_there_is_no_shell_and_the_shelf_says_why(tmp_path: Path) -> None:
    """Issue 5: files and http stay."""
    hands = Hands(tmp_path)
    shelf = hands.source.shelf
    assert [tool.name for tool in shelf.tools] == [
        "cron_list",
        "cron",
        "read_file",
        "attach_file",
        "write_file",
        "http_get",
        "change_settings",
        "skill_read",
        "skill_copy",
    ]
    assert shelf.problem == ("shell is not offered: no sandbox: bubblewrap: no; landlock: no")
    assert shelf.facts["sandbox"] == "off"
    told = await hands.call("shell", command="echo")  # of a turn that is older
    assert told.is_error
    assert "not run" in told.content


async def test_the_shelf(tmp_path: Path) -> None:
    """X-1: schema, risk, timeout, output cap and whether it may run twice, of each."""
    shelf = Hands(tmp_path, choice_of("landlock")).source.shelf
    assert (shelf.source, shelf.problem) == ("builtin", "")
    assert {tool.name: (tool.risk, tool.is_idempotent) for tool in shelf.tools} == {
        "shell": ("external", False),
        "read_file": ("read", True),
        "attach_file": ("read", True),
        "write_file": ("write", True),
        "http_get": ("external", True),
        "cron_list": ("read", True),
        "cron": ("write", True),
        "change_settings": ("write", True),
        "skill_read": ("read", True),
        "skill_copy": ("write", True),
    }
    for tool in shelf.tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.description
        assert tool.timeout_s >= 10


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {}),
        ("read_file", {"path": ""}),
        ("read_file", {"path": "a", "offset": -1}),
        ("write_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": "x", "mode": 7}),
        ("shell", {"command": ["ls"]}),
        ("shell", {"command": "ls", "timeout_s": 0}),
        ("http_get", {"url": 7}),
    ],
)
async def test_arguments_that_do_not_fit(tmp_path: Path, tool: str, arguments: dict) -> None:  # type: ignore[type-arg]
    """X-6: field and reason."""
    with pytest.raises(InvalidInput):
        await Hands(tmp_path).call(tool, **arguments)


async def test_the_probe_decides_what_is_offered(bare: Stack) -> None:
    """Issue 5: as it is started, with what works here; S9: no page is fetched from a broker."""
    bus = await bare.bus("executor")
    context = SimpleNamespace(
        settings=settings_of(bare.settings.home, sandbox="off"), clock=SystemClock(), bus=bus,
        warnings={}, beside=lambda work, name: asyncio.create_task(work, name=name),
    )  # fmt: skip
    source = await Builtin.open(context, tuple)  # type: ignore[arg-type]
    assert "executor.sandbox is off" in source.shelf.problem
    assert source.fetcher._rules.ports_never == bus.broker_ports
    await source.close()


async def test_a_change_of_settings_that_comes_again_leaves_newer_ones(bare: Stack) -> None:
    """S6: the executor died before it could tell that it ran; the person set another since."""
    settings = settings_of(bare.settings.home)
    bus = await bare.bus("executor")
    source = Builtin(settings, SystemClock(), NO_SANDBOX, bus)
    call = call_of("change_settings", settings.config, {"language": "de-AT"})
    assert "language: de-AT" in (await source.run(call)).content
    found = await own.find(bus, "ann")
    now, person = SystemClock().now(), settings.config.person_of("ann")
    newer = own.changed(found, {"language": "fr"}, now, "ann", person, ())
    await own.put(bus, "ann", newer, expect=found.revision)
    assert (await source.run(call)).content == "It was set, and may have been changed since."
    assert own.values((await own.find(bus, "ann")).own) == {"language": "fr"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_workspace_that_was_restored_by_root_can_be_worked_in(hands: Hands) -> None:
    """X-9: files come back as root's, commands run as somebody else."""
    (hands.workspace / "a").mkdir(parents=True)
    (hands.workspace / "a" / "b").write_text("old\n")
    (hands.workspace / "link").symlink_to(hands.settings.home)
    told = await hands.call("shell", command="echo new >> a/b; cat a/b")
    assert told.content == "old\nnew\n"
    assert hands.settings.home.stat().st_uid == 0


def test_what_is_not_always_offered_may_be_granted_before_it_is() -> None:
    """L-8: whoever adds a mailbox tomorrow may say today what is allowed with it."""
    config = Config()
    resting = {
        name for name, one in declared().items() if one.needs_sandbox or not one.is_offered(config)
    }
    assert resting == set(SOMETIMES)
