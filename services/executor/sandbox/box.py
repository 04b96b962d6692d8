"""What a command may see and do, and the sandbox that holds it to that.

A sandbox makes a longer command line out of a command line; whoever starts that starts the command
in its box. So the shell tool and the servers of MCP, whose SDK starts them by itself, go through
the same door. Values of variables never get onto a command line, which any user of the machine can
read: they go through the environment, and the line names those that come through.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

Kind = Literal["bubblewrap", "landlock", "off"]

LAUNCH: Final = Path(__file__).parent / "launch"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Where programs and libraries are; all may be read, nothing written."""
SETTINGS: Final = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/pki",
    "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
)  # fmt: skip
"""What programs look up to work at all. No accounts, no keys, no names of hosts."""
NETWORK_SETTINGS: Final = (
    "/etc/resolv.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/services",
    "/etc/protocols",
)


STANDARD: Final = ("PATH", "HOME", "LANG", "TMPDIR", "GIT_CONFIG_NOSYSTEM")
"""Names of variables that every command gets."""


class CommandLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one command may use. Each process has them for itself; `processes` is of all."""

    cpu_s: int | None = None
    """Processor seconds; None: whoever starts it watches the clock alone."""
    memory_bytes: int = 1024**3
    """Of memory that a process may write to and doesn't share. Addresses, which some runtimes
    reserve by the gigabyte and never use, don't count."""
    processes: int = 64
    """Threads count, too. Under Landlock, beyond those that the user has at the start."""
    file_bytes: int = 256 * 1024 * 1024
    files_open: int = 1024


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """What one command gets to see: the system's programs, and this."""

    workspace: Path
    """Where it works; it may write there. Its HOME, under its own path."""
    folders: tuple[Path, ...] = ()
    """More folders that it may read and write, under their own paths."""
    readable: tuple[Path, ...] = ()
    """Folders and files that it may read, under their own paths."""
    links: tuple[tuple[Path, str], ...] = ()
    """Symbolic links on the way to what it may read, and what they say."""
    network: bool = False
    """Whatever this machine reaches, this machine's own ports among it."""
    variables: tuple[str, ...] = ()
    """Names of the variables that come through, beside the standard ones."""
    limits: CommandLimits = CommandLimits()
    uid: int | None = None
    """Whom it runs as; None: who starts it. Only root may choose."""


class Sandbox:
    """A way to start commands in boxes.

    Args:
        line_of: makes the longer command line.
    """

    def __init__(self, kind: Kind, line_of: Callable[[Sequence[str], Box], list[str]]) -> None:
        self.kind = kind
        self._line_of = line_of

    def argv_of(
        self,
        command: Sequence[str],
        *,
        workspace: Path,
        folders: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        links: Sequence[tuple[Path, str]] = (),
        network: bool = False,
        env: Mapping[str, str] | None = None,
        limits: CommandLimits | None = None,
        uid: int | None = None,
    ) -> list[str]:
        """Return what to start instead of `command`.

        It has to be started with :func:`environment_of` as its environment. Standard input, output
        and error go through. It ends with the command, with the command's exit code (128 + the
        signal that ended it), and takes all that the command started with it; so does SIGTERM.

        Args:
            folders: must be there; symbolic links are followed once, now.
        """
        return self._line_of(
            command,
            Box(
                workspace=workspace.resolve(),
                folders=tuple(folder.resolve() for folder in folders),
                readable=tuple(path.resolve() for path in readable),
                links=tuple(links),
                network=network,
                variables=tuple(sorted(env or ())),
                limits=limits or CommandLimits(),
                uid=uid,
            ),
        )


def environment_of(env: Mapping[str, str] | None = None, *, workspace: Path) -> dict[str, str]:
    """Return all variables that a command gets: none of ours, but those in `env`."""
    return {
        "PATH": search_path(),
        "HOME": str(workspace.resolve()),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",  # git ends when that file is there and closed to it
        **(env or {}),
    }


def search_path() -> str:
    """Where programs are looked for: the system's folders, and that of this Python as the last."""
    mine = str(python().parent)
    return PATH if mine in PATH.split(":") else f"{PATH}:{mine}"


def python() -> Path:
    """Return this Python itself, not the link that a virtual environment has."""
    return Path(os.path.realpath(sys.executable))


_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from launch.start import main; main()"
)


def launcher(folder: str, plan: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return the line that starts :mod:`.launch` from `folder`, which then starts `command`.

    Isolated (-I) and without site-packages (-S): nothing of the environment or of the working
    directory is imported, and it starts in a few milliseconds.
    """
    return [str(python()), "-I", "-S", "-c", _START, folder, *plan, "--", *command]


def plan_of(box: Box) -> list[str]:
    """Return the part of the launcher's plan that is the same in every sandbox."""
    limits = msgspec.structs.asdict(box.limits)
    return [
        *(f"variable={name}" for name in (*STANDARD, *box.variables)),
        *(f"{name}={value}" for name, value in limits.items() if value is not None),
        *([] if box.uid is None else [f"uid={box.uid}"]),
        f"workspace={box.workspace}",
    ]


def python_folder() -> Path:
    """Return where this Python and its library are; it may be outside of :data:`SYSTEM`."""
    return Path(os.path.realpath(sys.base_prefix))
