"""`vigil approvals`: what waits for a person, shown exactly, and decided (SPEC X-2, P-2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.approvals import ANN, DIGEST, ID, ask, list_on_board, request
from tests.support.cli import Cli
from tests.support.gateway import Gate, running_gateway
from vigil.contracts import Control, Decision, decode_event, short_name
from vigil.sdk.client import ApiError, Client
from vigil.texts.exact import exact

OTHER: Final = "ab" + "0" * 30
HIDDEN: Final = "rm \x1b[2Jx\u202e\x9b1m\u200b é \U000e0041"


class Terminal:
    """The command line of Ann, with nothing but a URL and a token."""

    def __init__(self, gate: Gate, token: str, home: Path) -> None:
        self.gate = gate
        self.client = Client(f"http://127.0.0.1:{gate.port}", token)
        self._cli = Cli(home, VIGIL_URL=self.client.url, VIGIL_TOKEN=token)

    async def __call__(self, *args: str, code: int = 0, stdin: str = "") -> tuple[str, str]:
        done = await asyncio.to_thread(self._cli, "approvals", *args, code=code, stdin=stdin)
        return done.stdout, done.stderr

    async def offered(self, typed: str) -> list[str]:
        """Return what a shell offers after TAB."""
        asked = {"_VIGIL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": "3"}
        done = await asyncio.to_thread(self._cli, code=None, **asked)
        return done.stdout.split()

    async def json(self, *args: str) -> Any:
        return json.loads((await self(*args, "--json"))[0])

    async def decided(self) -> Decision:
        """Return the newest verdict in Ann's session."""
        found = await self.gate.admin.read(ANN.stream, [ANN.in_event("control")])
        event = decode_event(found[-1].data)
        assert isinstance(event, Control)
        assert event.payload.decision is not None
        return event.payload.decision


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Terminal]:
    async with running_gateway(tmp_path / "vigil") as gate:
        yield Terminal(gate, await gate.token("ann"), tmp_path / "home")


async def test_what_is_shown_is_exactly_what_would_run(ann: Terminal) -> None:
    """X-2, X-6: nothing in it hides, moves or turns what else is shown."""
    assert await ann() == ("", "Nothing waits for you.\n")
    assert await ann.json() == {"approvals": []}
    await ask(ann.gate, request(input={"command": HIDDEN}))
    shown = r'{"command": "rm \u001b[2Jx\u202e\u009b1m\u200b é \udb40\udc41"}'
    assert (await ann())[0].splitlines()[0].split() == [
        "NAME", "STATE", "EXPIRES", "(UTC)", "RISK", "TOOL", "ARGUMENTS", "SESSION",
    ]  # fmt: skip
    for args in ((), ("list",), ("show", ID)):
        out, _ = await ann(*args)
        assert shown in " ".join(out.split()).replace("{ ", "{").replace(" }", "}"), out
        assert not {"\x1b", "\u202e", "\x9b", "\u200b", "\U000e0041"} & set(out)
    (listed,) = (await ann.json())["approvals"]
    assert listed == await ann.json("show", ID)
    assert listed["input"] == {"command": HIDDEN}
    assert json.loads(exact(listed["input"], indent=2)) == listed["input"]


async def test_a_shell_offers_the_names_of_what_is_open(ann: Terminal) -> None:
    """P-2: what is decided waits for nobody."""
    await ask(ann.gate, request())
    await list_on_board(ann.gate, request(ANN, OTHER, state="rejected"))
    assert await ann.offered("vigil approvals accept ") == [short_name(ID)]


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (("accept", ID), {"verdict": "accept"}),
        (("accept", ID[:4], "--digest", DIGEST), {"verdict": "accept"}),
        (
            ("edit", ID[:1], "--input", '{"command": "ls"}'),
            {"verdict": "edit", "input": {"command": "ls"}},
        ),
        (("answer", "aaa", "none", "of", "it"), {"verdict": "answer", "text": "none of it"}),
        (("reject", "AAA"), {"verdict": "reject"}),
        (("reject", ID, "too", "late"), {"verdict": "reject", "text": "too late"}),
    ],
)
async def test_every_verdict(ann: Terminal, args: tuple[str, ...], wanted: dict[str, Any]) -> None:
    """X-2: with the digest of what was read."""
    await ask(ann.gate, request())
    told = await ann.json(*args)
    decision = await ann.decided()
    assert told.keys() == {"id", "event_id", "seq"}
    assert (decision.digest, decision.by, decision.verdict) == (DIGEST, "ann", wanted["verdict"])
    assert (decision.input, decision.text) == (wanted.get("input"), wanted.get("text", ""))
    assert await ann.json(*args) == told


async def test_exit_codes(ann: Terminal) -> None:
    """P-2, X-6: not found 3, ambiguous or wrong input 2, decided or other arguments 5."""
    await ask(ann.gate, request())
    _, told = await ann("accept", "f", code=3)
    assert "no approval begins with 'f'" in told
    await ann("show", "f" * 32, code=3)
    await ann("show", "g" * 32, code=2)
    await ann("accept", ID, "--digest", "e" * 64, code=5)
    for args in (("edit", ID, "--input", "{"), ("edit", ID, "--input", "[]"), ("edit", ID)):
        await ann(*args, code=2)
    await ann("list", "--state", "never", code=2)
    await list_on_board(ann.gate, request(id_=OTHER))
    _, told = await ann("reject", "a", code=2)
    assert ID in told
    assert OTHER in told
    await list_on_board(ann.gate, request(id_=OTHER, state="expired"))
    await ann("reject", OTHER[:3], code=5)
    await ann("edit", "aa", "--input", "-", stdin='{"command": "ls"}')
    assert (await ann.decided()).input == {"command": "ls"}
    await ann("accept", "aa", code=5)


async def test_what_was_decided_is_shown(ann: Terminal) -> None:
    """X-2"""
    decided_at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    edited = request(
        state="edited", edited={"command": "ls"}, decided_at=decided_at, call_id="c" * 32,
        is_tainted=True, text="be careful",
    )  # fmt: skip
    await list_on_board(ann.gate, edited)
    out, _ = await ann("show", "aaaa")
    for line in ("state    edited", "decided  2026-11-20 09:00:00 UTC", "said     be careful",
                 f"call     {'c' * 32}", "taint    untrusted content", "edited\n{"):  # fmt: skip
        assert line in out
    assert [one["id"] for one in (await ann.json("--state", "all"))["approvals"]] == [ID]


async def test_the_client_says_the_same(ann: Terminal) -> None:
    """P-7: each verdict as a method."""
    await ask(ann.gate, request())
    client = ann.client

    def decide() -> None:
        (found,) = client.approvals()
        assert client.approval(ID) == found
        told = client.answer(ID, "no", digest=found["digest"])
        assert client.answer(ID, "no") == told
        others: tuple[Callable[[], object], ...] = (
            lambda: client.accept(ID), lambda: client.edit(ID, {}), lambda: client.reject(ID, "no"),
        )  # fmt: skip
        for other in others:
            with pytest.raises(ApiError) as caught:
                other()
            assert caught.value.status == 409
        assert client.approvals(state="rejected", user="ann", limit=1) == []
        assert client.tools() == []
        assert list(client.sessions(kind="worker")) == []

    await asyncio.to_thread(decide)
