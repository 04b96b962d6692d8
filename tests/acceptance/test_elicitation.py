"""A server asks the person in the middle of a call, through all services and a restart."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.agent import ask
from tests.support.console import signed_in
from tests.support.mcp_client import NASTY, sandbox
from tests.support.world import Person, running_world
from vigil.clock import SystemClock
from vigil.contracts import TaskBlock


def asked(ann: Person, name: str) -> str:
    """Return the message that asks the person for that server."""
    return next(said.text for said in reversed(ann.talk.said) if f'server: "{name}"' in said.text)


async def test_a_server_asks_and_goes_on_with_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the protocol of 2026 a restart of the executor loses nothing; by that of 2025 the call is
    held, and is known to be lost with its connection. A declined one is declined there."""
    await sandbox()
    inn = {"command": sys.executable, "args": [str(NASTY), "elicits"]}
    pub = {"command": sys.executable, "args": [str(NASTY), "elicits", "legacy"]}
    async with running_world(
        tmp_path, monkeypatch, SystemClock(), has_hands=True, mcp={"inn": inn, "pub": pub}
    ) as world:
        ann = await world.person()

        async def until_told(text: str) -> None:
            async with asyncio.timeout(30):
                while not any(
                    isinstance(block, TaskBlock) and text in block.content
                    for turn in ann.talk.turns
                    for row in turn.rows
                    for block in row.blocks
                ):
                    await world.at_rest()

        await ann.exchange(ask(("inn__book", {"town": "Rome"})))
        name = asked(ann, "inn").partition("answer ")[2].partition(" ")[0]
        await ann.exchange(ask(("pub__book", {"town": "Bonn"})))
        held = asked(ann, "pub").partition("answer ")[2].partition(" ")[0]
        await ann.exchange(f"answer {held} 2")
        await until_told("Bonn: {'action': 'accept', 'content': {'nights': 2}}")

        await ann.exchange(ask(("pub__book", {"town": "Kiel"})))
        lost = asked(ann, "pub").partition("answer ")[2].partition(" ")[0]
        await world.gate.stack.stop("executor")
        await world.gate.stack.start("executor")
        await ann.exchange(f"answer {name} 3")
        await until_told("Rome: {'action': 'accept', 'content': {'nights': 3}}")
        await ann.exchange(f"answer {lost} 3")
        await until_told("ambiguous: the connection ended while the person was asked")

        await ann.exchange(ask(("inn__book", {"town": "Oslo"})))
        name = asked(ann, "inn").partition("answer ")[2].partition(" ")[0]
        browser = await signed_in(world.gate, "ann")
        page = await browser.page("/inbox")
        (form,) = [one for one in page.forms if "field-nights" in one]
        assert "How many nights? <IMPORTANT>" in page.text
        wrong = await browser.send("/inbox", **form | {"verdict": "fill", "field-nights": "many"})
        assert wrong.status_code == 303, wrong.text
        async with asyncio.timeout(30):
            while "still waits for you: that doesn't fit" not in ann.talk.said[-1].text:
                await world.at_rest()
        await browser.did("/inbox", id=form["id"], digest=form["digest"], verdict="fill",
                          **{"field-nights": "4"})  # fmt: skip
        await until_told("Oslo: {'action': 'accept', 'content': {'nights': 4}}")

        await ann.exchange(ask(("inn__book", {"town": "Bern"})))
        name = asked(ann, "inn").partition("answer ")[2].partition(" ")[0]
        await ann.exchange(f"reject {name}")
        await until_told("Bern: {'action': 'decline'")
        shown = str([request.rows for request in world.agent.requests])
        assert "How many nights" not in shown, "what a server says to the person no model reads"
