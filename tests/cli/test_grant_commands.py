"""`vigil grants` and `accept --always`: what is allowed is shown first (LOOPS L-8, P-2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.approvals import ID, ask, request
from tests.support.cli import Cli
from tests.support.gateway import Gate, running_gateway
from vigil.sdk.client import Client


class Terminal:
    """The command line of Ann, with nothing but a URL and a token."""

    def __init__(self, gate: Gate, token: str, home: Path) -> None:
        self.gate = gate
        self._cli = Cli(home, VIGIL_URL=f"http://127.0.0.1:{gate.port}", VIGIL_TOKEN=token)
        self.client = Client(f"http://127.0.0.1:{gate.port}", token)

    async def __call__(self, *args: str, code: int = 0) -> tuple[str, str]:
        done = await asyncio.to_thread(self._cli, *args, code=code)
        return done.stdout, done.stderr

    async def grants(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((await self("grants", "--json"))[0])["grants"]
        return found


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Terminal]:
    async with running_gateway(tmp_path / "vigil") as gate:
        yield Terminal(gate, await gate.token("ann"), tmp_path / "home")


async def test_a_grant_is_added_listed_shown_and_revoked(ann: Terminal) -> None:
    assert (await ann("grants"))[1] == "Nothing is allowed beforehand.\n"
    add = ("grants", "add", "shell", "--command", "df -h", "--more", "operands", "--expires", "30d",
           "--uses", "5", "--outside", "--why", "the disk")  # fmt: skip
    _, asked = await ann(*add, code=2)  # nobody is there to be asked
    assert '"df"' in asked
    assert "--yes" in asked
    assert await ann.grants() == []
    _, told = await ann(*add, "--yes")
    assert "Allowed as g1" in told
    (one,) = await ann.grants()
    assert one["constraints"] == [{"kind": "argv", "argv": ["df", "-h"], "more": "operands"}]
    assert (one["uses_max"], one["holds_for_outside"], one["why"]) == (5, True, "the disk")
    assert '"operands"' in (await ann("grants", "show", "g1"))[0]
    assert "0 of 5" in (await ann("grants"))[0]
    await ann("grants", "revoke", one["id"][:6])
    assert await ann.grants() == []
    assert "it was revoked" in (await ann("grants", "--all"))[0]


async def test_what_has_no_condition_is_asked_for_without_an_if(ann: Terminal) -> None:
    """It said `if []`, which could be read as never."""
    _, asked = await ann("grants", "add", "tickets__close", code=2)
    first, where = asked.splitlines()[:2]
    assert first == "vigil may run tickets__close without asking, whatever it is called with:"
    assert where.startswith("in all conversations; any number of times; until it is revoked")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("shell",), "constraints"),
        (("shell", "--command", "sh -c df"), "--command: 'sh' runs code"),
        (("shell", "--command", "df -h; id"), "--command: has ';' at character 6"),
        (("shell", "--command", "ls $HOME"), "--command: has '$' at character 4"),
        (("shell", "--command", "curl x", "--more", "operands"), "--more: must be 'nothing'"),
        (("shell", "--command", "df", "--more", "all"), "--more"),
        (("shell", "--command", "df '"), "--command"),
        (("http_get", "--url", "https://*.example.org/"), "url"),
        (("tickets__close", "--equal", "id"), "--equal"),
        (("shell", "--command", "df", "--expires", "soon"), "--expires"),
        (("*",), "tool"),
        (("shell", "--command", "df", "--row", "x"), "--row: no row of yours"),
        (("shell", "--command", "df", "--goal", ""), "ID: must not be empty"),
    ],
)
async def test_what_cant_be_allowed_says_why(
    ann: Terminal, args: tuple[str, ...], told: str
) -> None:
    _, error = await ann("grants", "add", *args, "--yes", code=2)
    assert told in error
    assert await ann.grants() == []


async def test_accepting_always_accepts_and_allows_such_calls(ann: Terminal) -> None:
    """L-8: as narrow as the call; made only after it was shown, or with --yes."""
    await ask(ann.gate, request(tool="shell", risk="external", input={"command": "df -h"}))
    await ann("approvals", "accept", ID, "--always", code=2)
    assert await ann.grants() == []
    _, told = await ann("approvals", "accept", ID, "--always", "--outside", "--yes")
    assert "Allowed as g1" in told
    (one,) = await ann.grants()
    assert one["constraints"] == [{"kind": "argv", "argv": ["df", "-h"]}]
    assert (one["made_by"], one["cause"], one["holds_for_outside"]) == ("approval", ID, True)


async def test_what_was_let_run_before_is_allowed_from_then_on(ann: Terminal) -> None:
    """L-8: a proposal names the request; with the arguments that the person put in their place."""
    decided = {"state": "edited", "edited": {"command": "df -h"}, "risk": "external"}
    await ask(ann.gate, request(**decided), in_state=False)
    await ask(ann.gate, request(id_="b" * 32), in_state=False)
    _, told = await ann("approvals", "always", "b" * 32, "--yes", code=2)
    assert "it is open" in told
    await ann("approvals", "always", "aaaaaaaa", code=2)
    assert await ann.grants() == []
    await ann("approvals", "always", "aaaaaaaa", "--yes")
    (one,) = await ann.grants()
    assert one["constraints"] == [{"kind": "argv", "argv": ["df", "-h"]}]
    assert (one["made_by"], one["cause"]) == ("approval", ID)


async def test_a_source_is_trusted_and_no_more(ann: Terminal) -> None:
    """F-15: what isn't trusted is not found, as of all that has a name."""
    assert "counts as your own" in (await ann("trust", "add", "hook:ci"))[1]
    assert "hook:ci" in (await ann("trust"))[0]
    assert "Trusted no more: hook:ci" in (await ann("trust", "remove", "hook:ci"))[1]
    _, told = await ann("trust", "remove", "hook:ci", code=3)
    assert "you don't trust 'hook:ci'; there is: none" in told
