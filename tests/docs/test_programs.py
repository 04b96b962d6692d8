"""The programs of docs/clients.md that know nothing of Vigil, run as they stand in examples/
(SPEC P-7): plain nats-py, and the NATS client for Node. What else they can't do is in
tests/shared/test_permissions.py."""

from __future__ import annotations

import asyncio
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import nats.errors
import pytest

from tests.support.gateway import Gate, running_gateway, until
from tests.support.programs import admit, are_taken_in
from vigil.cli.admin.programs import describe
from vigil.contracts import External, Signal, SignalSource, decode_event, encode
from vigil.processes import process as processes
from vigil.subjects import SessionKey

pytestmark = pytest.mark.usefixtures("own_broker")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = Path(sys.prefix) / "node" / "node_modules"
KEY = SessionKey("ann", "vigil", "t1")
WAIT_S = 30.0


class Language:
    """How the examples of one language are run."""

    def __init__(self, folder: Path, command: tuple[str, ...], suffix: str) -> None:
        self.folder = folder
        self.command = command
        self.suffix = suffix

    async def start(self, name: str, *args: str) -> processes.Process:
        program = str(self.folder / f"{name}{self.suffix}")
        return await processes.start(
            *self.command, program, *args, stdout=subprocess.PIPE, cwd=self.folder
        )

    async def run(self, name: str, *args: str) -> list[str]:
        """Run it to its end; return the lines it printed."""
        process = await self.start(name, *args)
        output, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
        assert process.returncode == 0
        return output.decode().splitlines()


@pytest.fixture(params=["python", "node"])
def language(request: pytest.FixtureRequest, tmp_path: Path) -> Language:
    """Each language; the examples are run where no code of Vigil is beside them."""
    folder = tmp_path / "examples"
    folder.mkdir()
    if request.param == "python":
        for file in EXAMPLES.glob("*.py"):
            shutil.copy(file, folder)
        return Language(folder, (sys.executable, "-u"), ".py")
    node = shutil.which("node")
    if node is None or not PACKAGES.exists():
        pytest.skip("needs Node, and its packages: `make test` installs them if there is npm")
    for file in (EXAMPLES / "node").glob("*.mjs"):
        shutil.copy(file, folder)
    (folder / "node_modules").symlink_to(PACKAGES)
    return Language(folder, (node,), ".mjs")


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with running_gateway(tmp_path / "home") as gate:
        yield gate


async def credential(gate: Gate, folder: Path, user: str = "ann") -> str:
    """Write what `vigil token create --bus --json` prints; return the path."""
    stack = gate.stack
    made = await admit(stack, user)
    file = folder / f"{user}.json"
    file.write_text(json.dumps(describe(stack.settings, made, stack.broker.url)))
    return str(file)


async def signal(gate: Gate, number: int, user: str = "ann") -> str:
    """Publish a signal as the cortex does; return its id."""
    key = SessionKey(user, "vigil", "t1")
    made = Signal(
        id=f"SESSIONS-{number}-message.sent",
        kind="message.sent",
        agent="vigil",
        owner=user,
        at=datetime.now(UTC),
        source=SignalSource(stream="SESSIONS", seq=number),
        session_key=str(key),
    )
    await gate.admin.publish(key.signal(made.kind), encode(made))
    return made.id


async def test_an_event_is_published_once(gate: Gate, language: Language, tmp_path: Path) -> None:
    """SPEC P-7: it arrives in the session; run again with its id, it's the same event."""
    file = await credential(gate, tmp_path)
    for _ in range(2):
        lines = await language.run(
            "publish_event", file, str(KEY), "build.failed", "red",
            *(["--id"] if language.suffix == ".py" else []), "42",
        )  # fmt: skip
        assert lines[0].startswith("stored: EVENTS ")

    await until(lambda: are_taken_in(gate.admin), "both are taken in")
    (stored,) = [decode_event(message.data) for message in await gate.stored(str(KEY))]
    assert isinstance(stored, External)
    assert (stored.payload.source, stored.payload.kind) == ("bus:ci", "build.failed")
    assert (stored.payload.origin_id, stored.payload.content) == ("42", "red")
    assert await gate.admin.read("DEAD", ["dead.>"]) == []


async def test_signals_wait_for_who_is_away(gate: Gate, language: Language, tmp_path: Path) -> None:
    """SPEC P-7: of ann only; what was acknowledged doesn't come again, the rest does."""
    file = await credential(gate, tmp_path)
    sent = [await signal(gate, number) for number in range(1, 6)]
    await signal(gate, 99, "bob")
    count = ["--count"] if language.suffix == ".py" else []
    first = await language.run("follow_signals", file, *count, "5")
    assert [json.loads(line)["id"] for line in first] == sent
    later = [await signal(gate, number) for number in (6, 7)]
    again = await language.run("follow_signals", file, *count, "2")
    assert [json.loads(line)["id"] for line in again] == later


class Quiet:
    """A consumer for which nothing happens for a while, and then one thing."""

    def __init__(self) -> None:
        # Either, depending on whose clock is first: the server's or nats-py's (2.16).
        self.errors = [nats.errors.TimeoutError(), TimeoutError()]

    async def pull_subscribe_bind(self, *_: object, **__: object) -> Quiet:
        return self

    async def fetch(self, *_: object, **__: object) -> list[Quiet]:
        if self.errors:
            raise self.errors.pop()
        return [self]

    data = b"a signal"

    async def ack(self) -> None: ...

    def jetstream(self, **_: object) -> Quiet:
        return self


async def test_a_quiet_while_does_not_end_the_follower(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SPEC P-7: nothing happens for longer than a fetch waits."""
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "run", lambda coroutine: coroutine.close())
        example = runpy.run_path(str(EXAMPLES / "follow_signals.py"))
    await example["durable"](Quiet(), {"domain": "", "consumer": "", "stream": ""}, 1)
    assert capsys.readouterr().out == "a signal\n"


async def test_signals_as_they_happen(gate: Gate, tmp_path: Path) -> None:
    """SPEC P-7: by a plain subscription; nothing of other people."""
    language = Language(EXAMPLES, (sys.executable, "-u"), ".py")
    file = await credential(gate, tmp_path)
    process = await language.start("follow_signals", file, "--live", "--count", "1")
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), WAIT_S) == b"listening\n"
    await signal(gate, 1, "bob")
    sent = await signal(gate, 2)
    output, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    assert [json.loads(line)["id"] for line in output.decode().splitlines()] == [sent]


def test_the_examples_know_nothing_of_vigil() -> None:
    for name in ("publish_event.py", "follow_signals.py"):
        text = (EXAMPLES / name).read_text("utf-8")
        assert "import vigil" not in text
        assert "from vigil" not in text
    lock = (EXAMPLES / "node" / "package-lock.json").read_text("utf-8")
    assert "resolved" not in lock, "no address of a registry"
