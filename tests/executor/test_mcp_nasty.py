"""An MCP server that means no good, or is broken: it harms itself alone (RELIABILITY S10, S12).

The server is `tests/mcp_servers/nasty.py`, in the real sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog

from services.executor.mcp import connection, pace
from services.executor.mcp.pace import DEAF
from services.executor.mcp.program import variables_of, workspace_of
from services.executor.mcp.stdio import LINE_BYTES_MAX
from services.executor.tools.source import ToolOutput
from tests.support.mcp_client import Hands, hands, nasty, on, sandbox
from tests.support.memories import until
from tests.support.stack import settings_of, some_broker
from vigil.backoff import Backoff
from vigil.circuits import CircuitOpen
from vigil.contracts import Pin, Pins, decode_pins, encode
from vigil.contracts.tools import ServerAnswer
from vigil.errors import ConfigError, Unavailable
from vigil.settings.servers import McpServer

MEBIBYTE = 1024 * 1024


def moody(home: Path, *moods: str) -> None:
    """Change what the server does; it notices when it is poked or started."""
    (home / "mcp" / "nasty" / "mood").write_text(" ".join(moods))


def programs(home: Path) -> set[int]:
    """Return the processes of the nasty server of this home: whatever lives in the server's own
    folder. Other tests run the same program at the same time."""
    own, found = str(workspace_of(home, "nasty")), set()
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if one.environ().get("HOME") == own:
                found.add(one.pid)
    return found


# ---------------------------------------------------------------- the rug pull


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_tool_that_changes_is_held_back_until_it_is_approved(
    tmp_path: Path, era: str
) -> None:
    """S12: told of a change or not, in the protocol of 2025 and of 2026."""
    async with hands(tmp_path, await sandbox(), nasty=nasty(era)) as found:
        tool = found.tool("nasty__add")
        assert (await found.run(tool, {"a": 1, "b": 2})).content == "3"
        moody(tmp_path, "changed", "more")
        await found.call("nasty__poke")
        shelf = await found.shelves.until("nasty", lambda shelf: len(shelf.held) == 2)
        changed, new = shelf.held
        assert (changed.name, changed.pinned) == ("nasty__add", tool.digest)
        assert "id_rsa" in changed.description
        assert (new.name, new.pinned) == ("nasty__extra", "")
        assert "2 held back until a person approves" in shelf.problem
        assert not any(tool.name == "nasty__add" for tool in shelf.tools)

        refused = await found.run(tool, {"a": 1, "b": 2})
        assert refused.is_error
        assert "did not run" in refused.content

        await approve(found, changed.digest, "nasty__add")
        await found.shelves.until("nasty", lambda shelf: len(shelf.held) == 1)
        assert "id_rsa" in found.tool("nasty__add").description
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"
        late = await found.run(tool, {"a": 1, "b": 2})
        assert late.is_error, "decided by the old description"

        moody(tmp_path)
        await found.call("nasty__poke")
        await found.shelves.until(
            "nasty", lambda shelf: [held.name for held in shelf.held] == ["nasty__add"]
        )


async def approve(found: Hands, digest: str, name: str) -> None:
    entry = await found.pins().get("nasty")
    assert entry is not None
    pins = decode_pins(entry.value)
    at = found.context.clock.now()
    tools = pins.tools | {name: Pin(digest=digest, at=at, by="operator")}
    await found.pins().put("nasty", encode(Pins(server="nasty", tools=tools)))


async def test_a_tool_that_changes_while_nobody_looks(tmp_path: Path) -> None:
    """S12: what was approved outlives the executor; a server can't wait for its restart."""
    choice = await sandbox()
    async with some_broker(tmp_path) as broker:
        settings = settings_of(tmp_path, mcp={"nasty": nasty()})
        async with on(broker.url, settings, choice) as found:
            assert found.shelves.sources["nasty"].shelf.held == ()
        moody(tmp_path, "changed")
        async with on(broker.url, settings, choice) as found:
            shelf = found.shelves.sources["nasty"].shelf
            assert [held.name for held in shelf.held] == ["nasty__add"]


async def test_it_is_looked_at_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S12: a server that changes and doesn't say so is found out, soon."""
    monkeypatch.setattr(connection, "LIST_AGAIN_S", 0.1)
    async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
        moody(tmp_path, "changed")
        await found.shelves.until("nasty", lambda shelf: shelf.held)


async def test_two_replicas_pin_the_same(tmp_path: Path) -> None:
    """S12: whoever is first; the other takes over what was pinned."""
    choice = await sandbox()
    async with some_broker(tmp_path) as broker:
        settings = settings_of(tmp_path, mcp={"nasty": nasty()})
        async with on(broker.url, settings, choice) as one, on(broker.url, settings, choice) as two:
            shelves = [each.shelves.sources["nasty"].shelf for each in (one, two)]
            assert shelves[0].tools == shelves[1].tools
            entry = await one.pins().get("nasty")
            assert entry is not None
            assert entry.revision == 1


# ---------------------------------------------------------------- listings


async def test_names_schemas_and_a_thousand_tools(tmp_path: Path) -> None:
    """X-1, S14: what can be used is offered, under usable names; the rest is told."""
    section = nasty("names", "schemas", "thousand")
    async with hands(tmp_path, await sandbox(), nasty=section) as found:
        shelf = found.shelves.sources["nasty"].shelf
        names = {tool.name for tool in shelf.tools}
        assert len(names) == len(shelf.tools) == 128
        assert {"nasty__with_space", "nasty__plain", "nasty__t1"} <= names
        spaced = next(name for name in names if name.startswith("nasty__with_space_"))
        assert (await found.call(spaced)).content == "called 'with space'"
        cyrillic = next(t.name for t in shelf.tools if "привет" in t.description)
        assert (await found.call(cyrillic)).content == "called 'привет 👋'"
        assert found.tool("nasty__hello").description == "Says hello."
        assert "the first 128 are taken" in shelf.problem
        assert not names & {"nasty__deep", "nasty__large", "nasty__elsewhere", "nasty__wrong"}
        assert "pattern" not in found.tool("nasty__slow").input_schema["properties"]["x"]


# ---------------------------------------------------------------- calls


async def test_what_a_server_wants_of_us_is_declined(tmp_path: Path) -> None:
    """S12: neither the model nor folders are at its service; the person answers for themselves."""
    async with hands(tmp_path, await sandbox(), nasty=nasty("legacy", "elicits")) as found:
        asked = await found.call("nasty__ask")
        assert asked.wanted is not None
        assert (asked.wanted.message, asked.is_tainted) == ("Your password, please", True)
        no = ServerAnswer(action="decline", state=asked.wanted.state)
        told = await found.run(found.tool("nasty__ask"), {}, answered=no)
        assert told.content.count("refused: ") == 2
        assert told.content.count("got {'action': 'decline'}") == 1
        late = await found.run(found.tool("nasty__ask"), {}, answered=no)
        assert late.content.startswith("ambiguous: the connection ended while the person was asked")


async def test_a_call_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-1: it ends at its timeout, and nobody claims to know what it did; others go on."""
    async with hands(tmp_path, await sandbox(), nasty=nasty(timeout_s=0.5)) as found:
        hanging, cancelled = (asyncio.create_task(found.call("nasty__hang")) for _ in range(2))
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        told = await hanging
        assert told.is_error
        assert told.content.startswith("ambiguous: there was no answer within 0.5 s")
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


async def test_a_server_that_answers_nothing_is_left_alone(tmp_path: Path) -> None:
    """C-5: after three calls without an answer the next is refused at once, and did not run."""
    async with hands(
        tmp_path, await sandbox(), nasty=nasty(timeout_s=0.5), other=nasty(timeout_s=0.5)
    ) as found:
        for _ in range(3):
            assert (await found.call("nasty__hang")).content.startswith("ambiguous")
        with pytest.raises(CircuitOpen, match="mcp:nasty is not asked for 30 s"):
            await found.call("nasty__add", a=1, b=2)
        assert (await found.call("other__add", a=1, b=2)).content == "3"


async def test_a_server_that_is_stuck_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: after a call without an answer it is asked whether it lives; if not, it is ended."""
    monkeypatch.setattr(connection, "LIST_S", 0.5)
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.05, 60.0))
    async with hands(tmp_path, await sandbox(), nasty=nasty(timeout_s=0.5)) as found:
        stuck = programs(tmp_path)
        assert stuck
        assert (await found.call("nasty__freeze")).content.startswith("ambiguous")
        await found.shelves.until("nasty", lambda shelf: "did not answer" in shelf.problem)
        await found.shelves.until("nasty", lambda shelf: not shelf.problem)
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"
        assert not stuck & programs(tmp_path)


async def test_a_server_that_dies_in_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5: ambiguous, never a second run; what may run twice says that it may be tried again."""
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.05, 60.0))
    async with hands(tmp_path, await sandbox(), nasty=nasty(idempotent=["hang"])) as found:
        told, hung = await asyncio.gather(
            found.call("nasty__die"), found.call("nasty__hang"), return_exceptions=True
        )
        assert isinstance(hung, Unavailable)
        assert isinstance(told, ToolOutput)
        assert told.is_error
        assert told.content.startswith("ambiguous: ")
        await found.shelves.until("nasty", lambda shelf: "exit code 7" in shelf.problem)
        await found.shelves.until("nasty", lambda shelf: not shelf.problem)
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


async def test_an_end_is_seen_though_nothing_is_to_be_listed_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5: after a list that took long the next one waits its turn; a new connection does not."""
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.05, 60.0))
    monkeypatch.setattr(connection, "LIST_PAUSE_S", 60.0)
    async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
        moody(tmp_path, "more")
        await found.call("nasty__poke")
        await found.shelves.until("nasty", lambda shelf: shelf.held)
        assert (await found.call("nasty__die")).content.startswith("ambiguous: ")
        await found.shelves.until("nasty", lambda shelf: "exit code 7" in shelf.problem)
        await found.shelves.until("nasty", lambda shelf: "exit code" not in shelf.problem)


async def test_one_that_asks_and_never_listens(tmp_path: Path) -> None:
    """X-1: what it asks waits in our memory for answers that it doesn't take; so that ends."""
    async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
        assert (await found.call("nasty__pester")).content.startswith("ambiguous: ")
        await found.shelves.until("nasty", lambda shelf: DEAF in shelf.problem)
        await found.shelves.until("nasty", lambda shelf: not shelf.problem)
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


async def test_a_large_answer_and_one_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: 10 MiB come through (and are cut for the model); 20 MiB, and a line without an end, end
    the connection and not the executor."""
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.05, 60.0))
    async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
        assert len((await found.call("nasty__big", mebibytes=10)).content) == 10 * MEBIBYTE
        for call in (found.call("nasty__big", mebibytes=20), found.call("nasty__flood")):
            assert (await call).content.startswith("ambiguous: ")
            await found.shelves.until("nasty", lambda shelf: "more than" in shelf.problem)
            await found.shelves.until("nasty", lambda shelf: not shelf.problem)
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


async def test_what_it_says_beside_its_messages(tmp_path: Path) -> None:
    """X-7: comes into our log, in lines that end somewhere, and not without an end."""
    with structlog.testing.capture_logs() as logs:
        async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
            assert not (await found.call("nasty__chatter", lines=150)).is_error
            assert (await found.call("nasty__add", a=1, b=2)).content == "3"

            async def is_told() -> bool:
                told = [len(said_in(logs, action)) for action in ("mcp.stderr", "mcp.said")]
                return told == [pace.LINES_MAX, pace.LINES_MAX]

            await until(is_told, "its lines are in the log")
    said = said_in(logs)
    assert said[0] == "[31mgreetings from stderr", "without the escape"
    assert len(said) == pace.LINES_MAX
    assert max(map(len, said)) == LINE_BYTES_MAX
    by_protocol = said_in(logs, "mcp.said")
    assert {len(line) for line in by_protocol} == {pace.LINE_LENGTH_MAX}
    assert by_protocol[0].startswith('{"told":"zzz')


def said_in(logs: list[Any], action: str = "mcp.stderr") -> list[str]:
    return [log["line"] for log in logs if log.get("action") == action]


# ---------------------------------------------------------------- starts and ends


async def test_nothing_is_left_of_a_server(tmp_path: Path) -> None:
    """S10: its daemons end with it, also if they left its session."""
    async with hands(tmp_path, await sandbox(), nasty=nasty()) as found:
        alone = programs(tmp_path)
        assert not (await found.call("nasty__children")).is_error

        async def are_more() -> bool:
            return alone < programs(tmp_path)

        await until(are_more, "its daemons begin")

    async def are_gone() -> bool:
        return not programs(tmp_path)

    await until(are_gone, "its programs end")


async def test_broken_servers_disturb_no_other(tmp_path: Path) -> None:
    """X-1: one dies at once, one isn't there, one is refused its folder, one its address."""
    async with hands(
        tmp_path, await sandbox(),
        nasty=nasty(), dead=nasty("dead"), missing={"command": "no-such-program"},
        greedy=nasty(folders=[str(tmp_path)]), nowhere={"url": "http://127.0.0.1:1/mcp"},
    ) as found:  # fmt: skip
        await found.shelves.until("nasty", lambda shelf: shelf.tools)
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"
        problems = {name: one.shelf.problem for name, one in found.shelves.sources.items()}
        assert problems["nasty"] == ""
        assert problems["dead"].endswith("it ended with exit code 1: can't start today")
        assert "is not a program" in problems["missing"]
        assert "Vigil's own home" in problems["greedy"]
        assert "not a public address" in problems["nowhere"]


CRASHES = (
    ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("import sys; sys.stderr.write('no newline'); sys.exit(3)", "no newline"),
    ("import sys; sys.stderr.write('Error: \\x1b[31mno key\\nat x\\n\\nNode.js v24\\n')",
     "Error: [31mno key"),
    ("import sys; print('x' * 9000, file=sys.stderr)", "x" * 200),
    ("import sys; sys.exit('npm error only-if-cached\\nnpm error A complete log of this run "
     "can be found in: /x')", "npm error only-if-cached (it has no network, see `network`)"),
    ("bytearray(2 << 30)", "MemoryError (the memory of each process is limited by "
     "executor.memory_bytes_max)"),
)  # fmt: skip


async def test_a_crash_tells_its_reason(tmp_path: Path) -> None:
    """X-1: beside the exit code the line that says why; bounded, and without escapes."""
    sections = {
        f"broken{number}": {"command": sys.executable, "args": ["-c", program]}
        for number, (program, _) in enumerate(CRASHES)
    }
    async with hands(tmp_path, await sandbox(), **sections) as found:
        for name, (_, reason) in zip(sections, CRASHES, strict=True):
            shelf = await found.shelves.until(name, lambda shelf: shelf.problem)
            assert "not connected: it ended with exit code" in shelf.problem
            assert shelf.problem.endswith(f": {reason}")


async def test_variables_of_a_file(tmp_path: Path) -> None:
    """X-1: secrets reach a program without being in `vigil.toml`; its own folder has a default."""
    (tmp_path / "env").write_text("# mine\nTICKETS_TOKEN=s3cret=x\n\nMEMORY_FILE_PATH = /tmp/m\n")
    section = McpServer(command="x", env={"A": "1"}, env_file="env")
    assert variables_of(section, tmp_path / "own", tmp_path) == {
        "A": "1", "TICKETS_TOKEN": "s3cret=x", "MEMORY_FILE_PATH": "/tmp/m",
    }  # fmt: skip
    plain = variables_of(McpServer(command="x"), tmp_path / "own", tmp_path)
    assert plain == {"MEMORY_FILE_PATH": str(tmp_path / "own" / "memory.jsonl")}
    for text, wrong in (("no pair", "one 'NAME=value' a line"), ("=x", "one 'NAME=value' a line")):
        (tmp_path / "env").write_text(text)
        with pytest.raises(ConfigError, match=wrong):
            variables_of(section, tmp_path, tmp_path)


async def test_a_server_that_says_nothing(tmp_path: Path) -> None:
    """X-1, X-6: it is given up in its time, and ended; the reason names what may be set."""
    section = nasty("silent", start_timeout_s=0.5)
    async with hands(tmp_path, await sandbox(), nasty=section) as found:
        assert found.shelves.sources["nasty"].shelf.problem == (
            "not connected: it did not answer in time, within 0.5 s (`start_timeout_s` of "
            "[mcp.nasty]; it has no network, see `network`)"
        )


async def test_what_fetches_itself_is_told_that_there_is_no_network(tmp_path: Path) -> None:
    """X-6: npx and uvx try for minutes to reach it, and say so only then."""
    program = (
        "import os, sys; sys.exit(f'Error: {sorted(set(os.environ) & "
        '{"npm_config_offline", "UV_OFFLINE"})}\')'
    )
    section = {"command": sys.executable, "args": ["-c", program]}
    lonely, online = section | {"network": False}, section | {"network": True}
    async with hands(tmp_path, await sandbox(), lonely=lonely, online=online) as found:
        for name, told in (
            ("lonely", "Error: ['UV_OFFLINE', 'npm_config_offline']"),
            ("online", "Error: []"),
        ):
            shelf = await found.shelves.until(name, lambda shelf: "Error" in shelf.problem)
            assert shelf.problem.endswith(told)
