"""Servers come, go and change with vigil.toml, and none notices another (issue 5)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog

from services.executor.mcp.program import program_of, workspace_of
from services.executor.sandbox.box import Box, Sandbox
from tests.support.mcp_client import NASTY, hands, nasty, sandbox
from tests.support.memories import until
from tests.support.stack import settings_of
from vigil.edits import toml_sections
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.live import followed
from vigil.settings.servers import McpServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    monkeypatch.delenv("VIGIL_PORT", raising=False)


async def test_servers_are_added_changed_and_removed_while_others_work(tmp_path: Path) -> None:
    """Issue 5: hot add and remove. A call of another server goes on all the while."""
    file = tmp_path / "vigil.toml"
    toml_sections.add(file, "mcp", "one", nasty(timeout_s=60.0))
    async with hands(tmp_path, await sandbox(), one=nasty(timeout_s=60.0)) as found:
        first = found.shelves.sources["one"]
        hanging = asyncio.create_task(found.call("one__hang"))
        toml_sections.add(file, "mcp", "two", nasty(risk="read"))
        await found.shelves.until("two", lambda shelf: shelf.tools)
        assert (await found.call("two__add", a=1, b=2)).content == "3"
        assert found.tool("two__add").risk == "read"

        toml_sections.remove(file, "mcp", "two")
        toml_sections.add(file, "mcp", "two", nasty(risk="write"))
        await found.shelves.until(
            "two", lambda shelf: shelf.tools and shelf.tools[0].risk == "write"
        )
        toml_sections.remove(file, "mcp", "two")
        await found.shelves.until_gone("two")
        assert found.servers.names == ("one",)
        assert found.shelves.sources["one"] is first
        assert not hanging.done()

        toml_sections.remove(file, "mcp", "one")
        await found.shelves.until_gone("one")
        assert (await hanging).content.startswith("ambiguous")


async def test_a_file_that_is_none_changes_nothing(tmp_path: Path) -> None:
    """Issue 5: the old configuration stays in force, and the log says why."""
    file = tmp_path / "vigil.toml"
    toml_sections.add(file, "mcp", "one", nasty())
    async with hands(tmp_path, await sandbox(), one=nasty()) as found:
        for text in ("[mcp.one]\ncommand = ", '[mcp.one]\ncommand = "a"\nurl = "http://b.test"\n'):
            with structlog.testing.capture_logs() as logs:
                file.write_text(text)
                await until(lambda: told(logs, "config.refused"), "it is told")
            assert (await found.call("one__add", a=1, b=2)).content == "3"
        file.unlink()
        toml_sections.add(file, "mcp", "two", nasty())
        await found.shelves.until("two", lambda shelf: shelf.tools)
        await found.shelves.until_gone("one")


async def told(logs: list[Any], action: str) -> bool:
    return any(log.get("action") == action for log in logs)


async def test_a_server_that_is_off_is_not_started(tmp_path: Path) -> None:
    async with hands(tmp_path, await sandbox(), one=nasty(is_enabled=False)) as found:
        assert found.shelves.sources == {}


# ---------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("name", "section", "reason"),
    [
        ("a", "", "set either command or url"),
        ("a", 'command = "x"\nurl = "https://a.test"', "set either command or url"),
        ("a__b", 'command = "x"', "contain '__'"),
        ("_a", 'command = "x"', "begin or end with '_'"),
        ("builtin", 'command = "x"', "Vigil's own tools"),
        ("a" * 33, 'command = "x"', "at most 32 characters"),
        ('"a b"', 'command = "x"', "letters"),
        ("a", 'command = "x"\nallow_private = true', "go with url"),
        ("a", 'url = "https://a.test"\nnetwork = true', "go with command"),
        ("a", 'command = "x"\nrisk = "none"', "risk"),
        ("a", 'command = "x"\nnonsense = 1', "nonsense"),
    ],
)
def test_a_wrong_section_is_told(tmp_path: Path, name: str, section: str, reason: str) -> None:
    """X-6: at the start, with its place and its reason."""
    (tmp_path / "vigil.toml").write_text(f"[mcp.{name}]\n{section}\n")
    with pytest.raises(ConfigError, match=reason):
        config.load({}, home=tmp_path)


# ---------------------------------------------------------------- what a program sees


def box_of(tmp_path: Path, section: McpServer) -> Box:
    """Return the box in which a server's program is started."""
    boxes: list[Box] = []

    def remember(command: Any, box: Box) -> list[str]:
        boxes.append(box)
        return list(command)

    program_of("one", section, settings_of(tmp_path / "home"), Sandbox("off", remember))
    return boxes[0]


def test_a_program_sees_its_own_code_and_no_more(tmp_path: Path) -> None:
    """X-1: the outermost node_modules, a package's folder, or the script alone; read-only."""
    package = tmp_path / "node_modules" / "@a" / "server"
    inner = package / "node_modules" / "b" / "index.js"
    project = tmp_path / "project"
    for folder in (inner.parent, project / "dist"):
        folder.mkdir(parents=True)
    (project / "package.json").touch()
    script, plain, data = project / "dist" / "index.js", tmp_path / "x.py", tmp_path / "data.json"
    for file in (inner, script, plain, data):
        file.touch()
    for code, shown in (
        (inner, tmp_path / "node_modules"),
        (script, project),
        (plain, plain),
    ):
        box = box_of(tmp_path, McpServer(command="/bin/sh", args=(str(code), str(data))))
        assert box.readable == (shown, data)
        assert box.folders == ()
        assert box.workspace == workspace_of(tmp_path / "home", "one")
        assert not box.network


def test_folders_are_what_is_configured(tmp_path: Path) -> None:
    """X-1: links are followed once, at the start, in the arguments as well."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    seen: list[list[str]] = []

    def remember(command: Any, box: Box) -> list[str]:
        seen.append(list(command))
        assert box.folders == (real,)
        return list(command)

    section = McpServer(command="/bin/sh", args=("-c", str(link)), folders=(str(link),))
    program_of("one", section, settings_of(tmp_path / "home"), Sandbox("off", remember))
    assert seen[0][1:] == ["-c", str(real)]


@pytest.mark.parametrize("folder", ["/", "{home}", "{home}/nkeys", "{home}/..", "{home}/link"])
def test_vigils_own_home_is_never_shown(tmp_path: Path, folder: str) -> None:
    """S15: not by its own name, nor by that of a folder around it, nor by a link."""
    home = tmp_path / "home"
    (home / "nkeys").mkdir(parents=True)
    (home / "link").symlink_to(home / "nkeys")
    wanted = folder.format(home=home)
    for section in (
        McpServer(command="/bin/sh", folders=(wanted,)),
        McpServer(command="/bin/sh", folders_read=(wanted,)),
    ):
        with pytest.raises(ConfigError, match="Vigil's own home"):
            box_of(tmp_path, section)


def test_a_workspace_may_be_shown(tmp_path: Path) -> None:
    workspace = tmp_path / "home" / "workspaces" / "vigil" / "ann"
    workspace.mkdir(parents=True)
    box = box_of(tmp_path, McpServer(command="/bin/sh", folders=(str(workspace),)))
    assert box.folders == (workspace,)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (McpServer(command="no-such-program"), "is not a program"),
        (McpServer(command=str(NASTY)), "is not a program"),
        (McpServer(command="/bin/sh", folders=("relative",)), "absolute"),
        (McpServer(command="/bin/sh", folders=("/no/such/folder",)), "No such file"),
    ],
)
def test_a_program_that_can_not_be_started(tmp_path: Path, section: McpServer, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        box_of(tmp_path, section)


def test_no_tool_may_take_longer_than_a_worker_is_waited_for(tmp_path: Path) -> None:
    """C-1, X-6: each mistake is named, and its limit."""
    (tmp_path / "vigil.toml").write_text(
        '[executor]\nshell_timeout_s = 256\n[mcp.slow]\ncommand = "x"\ntimeout_s = 600\n', "utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        config.load({}, home=tmp_path)
    lines = str(caught.value).splitlines()
    assert [line.partition(" may be 255 ")[0].rpartition(" ")[2] for line in lines] == [
        "executor.shell_timeout_s", "mcp.slow.timeout_s",
    ]  # fmt: skip
    assert config.load({"VIGIL_SESSIONS__WORKER_TIMEOUT_S": "645"}, home=tmp_path)
