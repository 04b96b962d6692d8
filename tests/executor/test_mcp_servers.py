"""Real MCP servers of the ecosystem, unchanged, over both transports (SPEC X-1, issue 5)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from services.executor.mcp import connection
from services.executor.mcp.server import ANOTHER
from services.executor.tools.source import ToolOutput
from tests.support.mcp_client import Hands, hands, node, sandbox, script
from vigil.backoff import Backoff
from vigil.broker.ports import free_port
from vigil.errors import Unavailable
from vigil.processes.process import start

FILES = {
    "create_directory", "directory_tree", "edit_file", "get_file_info", "list_allowed_directories",
    "list_directory", "list_directory_with_sizes", "move_file", "read_file", "read_media_file",
    "read_multiple_files", "read_text_file", "search_files", "write_file",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "note.txt").write_text("The parrot is called Kiwi.")
    return folder


async def test_the_filesystem_server_over_stdio(tmp_path: Path, folder: Path) -> None:
    """X-1: reads and writes the folder that it was given, and nothing beside it."""
    (tmp_path / "beside.txt").write_text("not for it")
    section = {
        "command": node(), "args": [script("filesystem")], "folders": [str(folder)],
        "risks": {"read_text_file": "read", "write_file": "write"},
    }  # fmt: skip
    async with hands(tmp_path / "home", await sandbox(), files=section) as found:
        shelf = found.shelves.sources["files"].shelf
        assert {tool.name for tool in shelf.tools} == {f"files__{name}" for name in FILES}
        assert shelf.problem == ""
        assert shelf.facts["state"] == "connected"
        risks = {tool.name: tool.risk for tool in shelf.tools}
        assert risks["files__read_text_file"] == "read"
        assert risks["files__write_file"] == "write"
        assert risks["files__move_file"] == "external"

        # Which folders it has it asks for itself (roots).
        async with asyncio.timeout(30):
            while str(folder) not in (await found.call("files__list_allowed_directories")).content:
                pass
        note = await found.call("files__read_text_file", path=str(folder / "note.txt"))
        assert note.content == "The parrot is called Kiwi."
        assert note.is_tainted
        assert not note.is_error
        await found.call("files__write_file", path=str(folder / "new.txt"), content="Hello")
        assert (folder / "new.txt").read_text() == "Hello"
        outside = await found.call("files__read_text_file", path=str(tmp_path / "beside.txt"))
        assert outside.is_error
        assert "Access denied" in outside.content
        wrong = await found.call("files__read_text_file", nonsense=1)
        assert wrong.is_error
        assert "path" in wrong.content


async def test_the_memory_server_keeps_what_it_is_told(tmp_path: Path) -> None:
    """X-1: added by its command alone, it writes into its own folder, and finds that again."""
    section = {"command": node(), "args": [script("memory")]}
    entity = {"name": "Kiwi", "entityType": "parrot", "observations": ["sings at noon"]}
    async with hands(tmp_path / "home", await sandbox(), memory=section) as found:
        told = await found.call("memory__create_entities", entities=[entity])
        assert not told.is_error, told.content
    assert "sings at noon" in (tmp_path / "home" / "mcp" / "memory" / "memory.jsonl").read_text()
    async with hands(tmp_path / "home", await sandbox(), memory=section) as found:
        assert "sings at noon" in (await found.call("memory__read_graph")).content


async def test_the_sandbox_holds_what_a_server_was_not_given(tmp_path: Path, folder: Path) -> None:
    """X-1: told to serve folders of the machine, it doesn't see them: they were not granted."""
    secret = tmp_path / "home" / "nkeys"
    section = {
        "command": node(), "args": [script("filesystem"), str(folder), str(secret), "/"],
        "folders": [str(folder)],
    }  # fmt: skip
    async with hands(tmp_path / "home", await sandbox(), files=section) as found:
        keys = await found.call("files__list_directory", path=str(secret))
        assert keys.is_error
        assert "ENOENT" in keys.content or "denied" in keys.content
        assert secret.is_dir()
        note = await found.call("files__read_text_file", path=str(folder / "note.txt"))
        assert not note.is_error


async def test_the_everything_server_over_stdio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: every kind of result; and of the environment only what is configured."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    section = {"command": node(), "args": [script("everything")], "env": {"COLOUR": "green"}}
    async with hands(tmp_path, await sandbox(), every=section) as found:
        assert (await found.call("every__echo", message="hi")).content == "Echo: hi"
        assert "is 5" in (await found.call("every__get-sum", a=2, b=3)).content
        image = await found.call("every__get-tiny-image")
        assert "[an image, image/png, 4033 bytes]" in image.content
        assert [file.about.size for file in image.files] == [4033]
        resource = await found.call(
            "every__get-resource-reference", resourceType="Text", resourceId=1
        )
        assert "[the resource demo://resource/dynamic/text/1, text/plain]\n" in resource.content
        assert "This is a plaintext resource created at" in resource.content
        links = await found.call("every__get-resource-links", count=2)
        assert links.content.count("[a resource: ") == 2
        weather = await found.call("every__get-structured-content", location="New York")
        assert "temperature" in weather.content

        environment = json.loads((await found.call("every__get-env")).content)
        assert environment["COLOUR"] == "green"
        assert environment["HOME"] == str(tmp_path / "mcp" / "every")
        assert "canary" not in environment.values()
        assert not any(name.startswith(("ANTHROPIC", "VIGIL", "PYTEST")) for name in environment)


async def test_a_server_without_a_sandbox_is_not_started(tmp_path: Path) -> None:
    """X-1: rather no tools than tools that may do anything."""
    section = {"command": node(), "args": [script("everything")]}
    async with hands(tmp_path, await sandbox(is_off=True), every=section) as found:
        shelf = found.shelves.sources["every"].shelf
        assert shelf.tools == ()
        assert "no sandbox" in shelf.problem


# ---------------------------------------------------------------- streamable HTTP


@contextlib.asynccontextmanager
async def everything_over_http(port: int) -> AsyncIterator[str]:
    """The reference server as its own program, as its documentation starts it."""
    process = await start(
        node(), script("everything"), "streamableHttp",
        env={"PORT": str(port), "PATH": "/usr/bin"}, stdout=DEVNULL, stderr=PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            while b"listening" not in await process.stderr.readline():
                assert process.returncode is None
        draining = asyncio.create_task(process.stderr.read())
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()
        await draining


@contextlib.asynccontextmanager
async def everything(*, is_web: bool) -> AsyncIterator[dict[str, Any]]:
    """The reference server over either transport, as it is configured."""
    if not is_web:
        yield {"command": node(), "args": [script("everything")]}
        return
    async with everything_over_http(free_port()) as url:
        yield {"url": url, "allow_private": True}


async def test_a_server_over_http_that_goes_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: the same tools, the same answers; a call that could not be sent surely did not run; the
    tools come back with it."""
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.2, 0.2))
    port = free_port()
    section = {"url": f"http://127.0.0.1:{port}/mcp", "allow_private": True, "timeout_s": 20}
    async with hands(tmp_path, await sandbox(is_off=True), every=section) as found:
        assert "nothing listens there" in found.shelves.sources["every"].shelf.problem.lower()
        async with everything_over_http(port):
            await found.shelves.until("every", lambda shelf: shelf.tools)
            tool = found.tool("every__echo")
            assert (await found.run(tool, {"message": "hi"})).content == "Echo: hi"
            many = await asyncio.gather(
                *(found.call("every__get-sum", a=n, b=1) for n in range(20)),
                found.call("every__trigger-long-running-operation", duration=1, steps=2),
            )
            assert [told.is_error for told in many] == [False] * 21
        with contextlib.suppress(Unavailable):  # unless its tools were gone before that
            told = await found.run(tool, {"message": "hi"})
            assert told.content == ANOTHER.format(tool=tool.name)
        await found.shelves.until("every", lambda shelf: not shelf.tools)
        async with everything_over_http(port):
            await found.shelves.until("every", lambda shelf: shelf.tools)
            assert (await found.call("every__echo", message="hi")).content == "Echo: hi"
        async with everything_over_http(port):  # it is another one, and has no such session
            assert (await said_when_it_can(found)).content == "Echo: ho"


async def said_when_it_can(found: Hands) -> ToolOutput:
    """Call until it is sent: that the server before has gone may be seen at any moment, since each
    of them tells some time after its start that its tools have changed, and is asked for them."""
    while True:
        await found.shelves.until("every", lambda shelf: shelf.tools)
        with contextlib.suppress(Unavailable):
            told = await found.call("every__echo", message="ho")
            if told.content != ANOTHER.format(tool="every__echo"):
                return told
