"""How the program of a server is started: its command line, its folders, its variables.

It sees the system's programs, a folder of its own, the folders that the configuration names, and of
the rest of the machine its own code: a virtual environment, the outermost ``node_modules``, the
folder with the package's manifest, or else the file itself, always read-only. Nothing is shown
because it is near: who names a script in their home shows that file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from vigil.errors import ConfigError
from vigil.settings.config import Settings
from vigil.settings.sections import McpServer

from ..pairs import read
from ..sandbox.box import SYSTEM, CommandLimits, Sandbox, environment_of, search_path
from .stdio import Program

MANIFESTS: Final = ("package.json", "pyproject.toml")
DATA: Final = {"MEMORY_FILE_PATH": "memory.jsonl"}
"""Variables by which servers are told where their data goes, and the file in their own folder that
they name unless the configuration says otherwise. By itself the reference memory server writes
beside its code, which is read-only."""
LEVELS_MAX: Final = 2
"""How far above a script its package's manifest is looked for."""


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
    readable += _code((command, *args), settings.home)
    variables = variables_of(config, workspace, settings.home)
    limits = settings.config.executor
    argv = sandbox.argv_of(
        [command, *args],
        workspace=workspace,
        folders=list(folders.values()),
        readable=list(dict.fromkeys(readable)),
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


def variables_of(config: McpServer, workspace: Path, home: Path) -> dict[str, str]:
    """Return the variables of a program, beside the standard ones. Raises: ConfigError."""
    data = {name: str(workspace.resolve() / file) for name, file in DATA.items()}
    return data | config.env | read("env_file", home, config.env_file, "=")


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
    return os.path.join(os.path.realpath(folder), name) if path.startswith("/") else path  # noqa: PTH118


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


def _code(line: Iterable[str], home: Path) -> list[Path]:
    """Return what of the machine the program needs to see of itself.

    Of the command and the first file that it is given, the whole package; of other files, the file.
    """
    shown: list[Path] = []
    packages = 2
    for word in line:
        path = Path(word)
        if not path.is_absolute() or not path.is_file():
            continue
        for place in dict.fromkeys((path, path.resolve())):
            package = _package_of(place, home) if packages > 0 else place
            if not _is_system(package):
                shown.append(package)
        packages -= 1
    return shown


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)


def _package_of(file: Path, home: Path) -> Path:
    """Return the folder that holds a program's code and no more, or the file itself."""
    above = list(file.parents)
    outermost = [folder for folder in above if folder.name == "node_modules"]
    if outermost:
        return outermost[-1]
    if (file.parent.parent / "pyvenv.cfg").is_file():
        return file.parent.parent
    for folder in _own(above[:LEVELS_MAX], home):
        if any((folder / manifest).is_file() for manifest in MANIFESTS):
            return folder
    return file


def _own(folders: Iterable[Path], home: Path) -> Iterator[Path]:
    """Yield folders that hold neither Vigil's home nor a person's."""
    for folder in folders:
        if home.is_relative_to(folder) or Path.home().is_relative_to(folder):
            return
        yield folder
