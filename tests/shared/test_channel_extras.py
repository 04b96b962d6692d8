"""Each channel's library is an extra of its own: it's there for that channel, and for no other."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from vigil.channels.kinds import BUILT_IN

PROJECT: Final = Path(__file__).parents[2] / "pyproject.toml"
LIBRARIES: Final = frozenset({"nio", "aiogram", "aiohttp", "apprise", "jeepney"})
NEEDED: Final[dict[str, tuple[set[str], tuple[str, ...]]]] = {
    "matrix": ({"nio", "aiohttp"}, ("matrix.sender", "matrix.listener", "matrix.login")),
    "telegram": ({"aiogram", "aiohttp"}, ("telegram.sender", "telegram.listener")),
    "slack": ({"aiohttp"}, ("slack.sender", "slack.listener")),
    "discord": ({"aiohttp"}, ("discord.sender", "discord.listener")),
    "apprise": ({"apprise"}, ("notices.apprise_sender",)),
    "desktop": ({"jeepney"}, ("notices.desktop_sender",)),
    "ntfy": (set(), ("notices.ntfy_sender",)),
    "push": (set(), ("push.sender",)),
    "mail": (set(), ("mail.sender", "mail.listener")),
    "webhook": (set(), ("webhook_sender",)),
}
"""Of each kind: what is imported once it's configured, its own and what that brings; and where."""
WITHOUT: Final = "services.gateway.app", "services.delivery.__main__", "vigil.channels.kinds"
"""Both services, and all that they know of each kind."""
PROGRAM: Final = """
import gc, importlib, json, os, sys

def loaded():
    return sorted({name.partition(".")[0] for name in sys.modules} & libraries)

gc.disable()  # a quarter of what aiogram takes
libraries, without, needed = (set(given[0]), *given[1:])
for name in without:
    importlib.import_module(name)
print(json.dumps(["", loaded()]), flush=True)
assert not loaded()
for kind, (wanted, modules) in needed.items():
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    for name in libraries - set(wanted):
        sys.modules[name] = None
    for name in modules:
        importlib.import_module(f"vigil.channels.{name}")
    for name in libraries - set(wanted):
        del sys.modules[name]
    print(json.dumps([kind, loaded()]), flush=True)
    os._exit(0)
"""
"""Prints which libraries are imported by what knows no channel's, and on top of it, in a process of
its own, by each kind, with all others away: a kind that can't do without them prints nothing."""


@pytest.fixture(scope="module")
def loaded() -> tuple[dict[str, set[str]], str]:
    """Return the libraries by kind, those without any by the empty name, and what else is told."""
    needed = {kind: (sorted(wanted), modules) for kind, (wanted, modules) in NEEDED.items()}
    given = json.dumps([sorted(LIBRARIES), WITHOUT, needed])
    program = f"given = {given}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    lines = map(json.loads, done.stdout.splitlines())
    return {kind: set(libraries) for kind, libraries in lines}, done.stderr


def test_where_no_channel_is_configured_no_library_is_imported(
    loaded: tuple[dict[str, set[str]], str],
) -> None:
    """D-1."""
    libraries, told = loaded
    assert libraries[""] == set(), told


def test_of_each_kind_is_known_what_it_needs() -> None:
    assert set(NEEDED) == set(BUILT_IN)
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert {kind for kind, (needed, _) in NEEDED.items() if needed} <= set(extras)
    assert all(len(extras[kind]) == 1 for kind, (needed, _) in NEEDED.items() if needed)


@pytest.mark.parametrize("kind", NEEDED)
def test_a_kind_works_where_its_extra_alone_is_installed(
    kind: str, loaded: tuple[dict[str, set[str]], str]
) -> None:
    """D-1: the libraries of all others aren't there."""
    libraries, told = loaded
    assert kind in libraries, told
    assert libraries[kind] <= NEEDED[kind][0]
