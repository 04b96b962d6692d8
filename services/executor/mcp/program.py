"""How the program of a server is started: its command line, its folders, its variables.

It sees the system's programs, a folder of its own, the folders that the configuration names, and of
the rest of the machine its own code and what runs that (:mod:`.code`), always read-only. Nothing is
shown because it is near: who names a script in their home shows that file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import mcp_types as types
from pydantic import FileUrl

from vigil.errors import ConfigError, Unavailable
from vigil.settings.config import Settings
from vigil.settings.servers import McpServer

from ..pairs import read
from ..sandbox.box import CommandLimits, Kind, Sandbox, environment_of, search_path
from ..sandbox.commands import Watches
from ..sandbox.memory import SERVER_S as MEMORY_S
from ..sandbox.memory import MemoryWatch
from ..workspace.disk import SERVER_S as DISK_S
from ..workspace.disk import Disk
from .code import code_of
from .stdio import Program

DATA: Final = {"MEMORY_FILE_PATH": "memory.jsonl"}
"""Variables by which servers are told where their data goes, and the file in their own folder that
they name unless the configuration says otherwise. By itself the reference memory server writes
beside its code, which is read-only."""
OFFLINE: Final = {"npm_config_offline": "true", "UV_OFFLINE": "1"}
"""Tells `npx` and `uvx` that there is no network: they would try for minutes to reach it."""


def workspace_of(home: Path, server: str) -> Path:
    """Return the folder of a server's own: where it works, and its HOME."""
    return home / "mcp" / server


def program_of(name: str, config: McpServer, settings: Settings, sandbox: Sandbox) -> Program:
    """Return what to start, and make its folder.

    Raises:
        ConfigError: it can't be started like this.
    """
    workspace = workspace_of(settings.home, name)
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = _command(config.command)
    folders = {folder: _folder(folder, settings) for folder in config.folders}
    args = [str(folders.get(arg, _unlinked(arg))) for arg in config.args]
    readable = [_folder(folder, settings) for folder in config.folders_read]
    known = {"PATH": path_of(command)} | ({} if config.network else OFFLINE)
    variables = known | variables_of(config, workspace, settings.home)
    code = code_of((command, *args), settings.home, variables["PATH"])
    readable += code.shown
    limits = settings.config.executor
    argv = sandbox.argv_of(
        [command, *args],
        workspace=workspace,
        folders=list(folders.values()),
        readable=list(dict.fromkeys(readable)),
        links=code.links,
        network=config.network,
        env=variables,
        limits=CommandLimits(
            memory_bytes=limits.memory_bytes_max,
            processes=limits.processes_max,
            file_bytes=limits.file_bytes_max,
        ),
    )
    env = environment_of(variables, workspace=workspace)
    return Program(argv=tuple(argv), env=env, cwd=str(workspace))


def guard_of(server: str, settings: Settings, disk: Disk, kind: Kind) -> Watches:
    """Return what looks after a server's program, in a sandbox of this kind: how much it writes,
    and how much memory it takes. Blocks.

    Raises:
        Unavailable: there is no room on the disk.
    """
    folder = workspace_of(settings.home, server)
    allowance = disk.allowance(folder)
    if allowance.why_not:
        raise Unavailable(f"{folder}: {allowance.why_not}")
    memory = MemoryWatch(settings.config.executor.memory_bytes_max, MEMORY_S)
    return Watches(disk.guard(folder, allowance, kind, DISK_S), memory)


def roots_of(config: McpServer) -> Callable[[], list[types.Root]] | None:
    """Return what tells a program its folders, if it has any, when it asks."""
    folders = (*config.folders, *config.folders_read)

    def list_roots() -> list[types.Root]:
        found = [Path(one).expanduser().resolve() for one in folders]
        return [types.Root(uri=FileUrl(one.as_uri()), name=one.name) for one in found]

    return list_roots if folders else None


def variables_of(config: McpServer, workspace: Path, home: Path) -> dict[str, str]:
    """Return the variables of a program, beside the standard ones. Raises: ConfigError."""
    data = {name: str(workspace.resolve() / file) for name, file in DATA.items()}
    return data | config.env | read("env_file", home, config.env_file, "=")


def path_of(command: str) -> str:
    """Return where a program looks for others: first where it lies itself, such as `npx`, whose
    `node` is that of its own version."""
    mine, known = str(Path(command).parent), search_path()
    return known if mine in known.split(":") else f"{mine}:{known}"


def _command(command: str) -> str:
    """Return the program's path; symbolic links of its folder followed, its own kept.

    By its own link a virtual environment's Python finds the environment.
    """
    found = shutil.which(str(Path(command).expanduser()), path=search_path())
    if found is None:
        raise ConfigError(f"command: {command!r} is not a program, or not where programs are")
    return _unlinked(found)


def _unlinked(path: str) -> str:
    """Return an absolute path without symbolic links in its folder, anything else as it is."""
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder).rstrip('/')}/{name}" if path.startswith("/") else path


def _folder(text: str, settings: Settings) -> Path:
    """Return a folder that a server may see. Raises: ConfigError."""
    folder = Path(text).expanduser()
    if not folder.is_absolute():
        raise ConfigError(f"folders: {text!r} must be an absolute path")
    try:
        folder = folder.resolve(strict=True)
    except OSError as error:
        raise ConfigError(f"folders: {text!r}: {error.strerror}") from error
    home = settings.home.resolve()
    is_inside = folder.is_relative_to(home) and not folder.is_relative_to(settings.workspaces)
    if is_inside or home.is_relative_to(folder):
        raise ConfigError(f"folders: {text!r} would show Vigil's own home, with its keys")
    return folder
