"""What a start imports, for which each process pays in time and memory; and each channel's library
is an extra of its own: it's there for that channel, and for no other."""

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
STARTED: Final = (
    *(f"services.{one}.__main__" for one in (
        "gateway", "cortex", "memory", "scheduler", "executor", "delivery",
    )),
    "vigil.cli.app",
    "vigil.backup.backup",
    "services.gateway.app",
    "vigil.channels.kinds",
)  # fmt: skip
"""All services, all commands, and all that they know of each kind of channel."""
UNNEEDED: Final = LIBRARIES | {
    "anthropic", "click", "cloudevents", "cryptography", "icalendar", "jinja2", "jsonschema", "mcp",
    "numpy", "onnxruntime", "openai", "qdrant_client", "qdrant_edge", "rich", "snowballstemmer",
    "tokenizers", "wordllama",
}  # fmt: skip
PROGRAM: Final = """
import gc, importlib, json, os, sys

def loaded(libraries):
    return sorted({name.partition(".")[0] for name in sys.modules} & libraries)

gc.disable()  # a quarter of what aiogram takes
started, unneeded, libraries, needed = (given[0], set(given[1]), set(given[2]), given[3])
for name in started:
    importlib.import_module(name)
found = loaded(unneeded) + ["nats.js"] * ("nats.js" in sys.modules)
# Of FastAPI's models of a document only names are made; a document builds them.
from fastapi.openapi.models import OpenAPI as built
print(json.dumps(["", found + ["built"] * built.__pydantic_complete__]), flush=True)
assert not loaded(libraries)
is_shared = False
for kind, (wanted, modules) in sorted(needed.items(), key=lambda one: "aiohttp" in one[1][0]):
    if "aiohttp" in wanted and not is_shared:  # once, for all that are forked from here on
        importlib.import_module("aiohttp")
        assert loaded(libraries) == ["aiohttp"]
        is_shared = True
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    for name in libraries - set(wanted):
        sys.modules[name] = None
    for name in modules:
        importlib.import_module(f"vigil.channels.{name}")
    for name in libraries - set(wanted):
        del sys.modules[name]
    if kind == "telegram":  # of its 400 models the few that are used are built, with all they need
        from aiogram.types import Message, Update
        from vigil.imports.aiogram import Response
        assert not Message.__pydantic_complete__
        told = {"message_id": 1, "date": 0, "chat": {"id": 2, "type": "private"}, "text": "hi",
                "from": {"id": 3, "is_bot": False, "first_name": "Ann"}}
        assert Response[Message].model_validate({"ok": True, "result": told}).result.chat.id == 2
        assert Update.model_validate({"update_id": 1, "message": told}).message.text == "hi"
    print(json.dumps([kind, loaded(libraries)]), flush=True)
    os._exit(0)
"""
"""Prints which libraries are imported by what is started, and on top of it, in a process of
its own, by each kind, with all others away: a kind that can't do without them prints nothing."""


@pytest.fixture(scope="module")
def loaded() -> tuple[dict[str, set[str]], str]:
    """Return the libraries by kind, those without any by the empty name, and what else is told."""
    needed = {kind: (sorted(wanted), modules) for kind, (wanted, modules) in NEEDED.items()}
    given = json.dumps([STARTED, sorted(UNNEEDED), sorted(LIBRARIES), needed])
    program = f"given = {given}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    lines = map(json.loads, done.stdout.splitlines())
    return {kind: set(libraries) for kind, libraries in lines}, done.stderr


def test_what_few_need_is_imported_when_it_is_used(
    loaded: tuple[dict[str, set[str]], str],
) -> None:
    """P-1, D-1: neither a service's start nor a command waits for it, no channel's library either
    where none is configured."""
    libraries, told = loaded
    assert libraries[""] == set(), told


def test_up_imports_no_other_command() -> None:
    """P-1: what it starts is forked from it, and has all that it has."""
    code = "import sys, vigil.cli; sys.argv = ['vigil', 'up', '--help']; vigil.cli.main()"
    tell = "atexit.register(lambda: print('vigil.cli.app' in sys.modules))"
    code = f"import atexit, sys; {tell}; {code}"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "False"
    assert "--detach" in done.stdout


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
