"""Each channel's library is an extra of its own: it's there for that channel, and for no other."""

from __future__ import annotations

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
LOADED: Final = "print(*sorted({{name.partition('.')[0] for name in sys.modules}} & {names}))"


def loaded(source: str) -> set[str]:
    """Return which of the libraries are imported after that, in an interpreter of its own."""
    code = f"import sys\n{source}\n{LOADED.format(names=set(LIBRARIES))}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_where_no_channel_is_configured_no_library_is_imported() -> None:
    """D-1: both services, and all that they know of each kind."""
    wanted = "import services.gateway.app, services.delivery.__main__, vigil.channels.kinds"
    assert loaded(wanted) == set()


def test_of_each_kind_is_known_what_it_needs() -> None:
    assert set(NEEDED) == set(BUILT_IN)
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert {kind for kind, (needed, _) in NEEDED.items() if needed} <= set(extras)
    assert all(len(extras[kind]) == 1 for kind, (needed, _) in NEEDED.items() if needed)


@pytest.mark.parametrize("kind", NEEDED)
def test_a_kind_works_where_its_extra_alone_is_installed(kind: str) -> None:
    """D-1: the libraries of all others aren't there."""
    needed, modules = NEEDED[kind]
    hidden = "\n".join(f"sys.modules[{name!r}] = None" for name in sorted(LIBRARIES - needed))
    imports = "\n".join(f"import vigil.channels.{module}" for module in modules)
    shown = "\n".join(f"del sys.modules[{name!r}]" for name in sorted(LIBRARIES - needed))
    assert loaded(f"{hidden}\n{imports}\n{shown}") <= needed
