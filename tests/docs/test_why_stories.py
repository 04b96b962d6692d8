"""The stories in docs/why.md are what `vigil why` prints: told by the real stack, word for word.

The clock stands still where the test puts it, so that times are the same each time; ids that
appear in a story are replaced. After a change of the wording, write the page anew and read what
changed:

    VIGIL_WRITE_WHY=1 .venv/bin/python -m pytest tests/docs/test_why_stories.py
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from services.cortex.model import ModelAnswer, ModelRequest
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.cli.commands.why import story
from vigil.contracts import AGENT_FOLLOW_UP, ToolUseBlock, Usage

PAGE: Final = Path(__file__).parents[2] / "docs" / "why.md"
WIDTH: Final = 90
MORNING: Final = datetime(2031, 3, 3, 9, tzinfo=UTC)
"""One that the broker, which has a clock of its own, hasn't reached."""
SECRET: Final = "whsec_" + "c2VjcmV0" * 4


@contextlib.asynccontextmanager
async def morning(
    home: Path, monkeypatch: pytest.MonkeyPatch, **sections: Any
) -> AsyncIterator[tuple[World, Person]]:
    """All services with the rehearsal model, and Ann, who follows her session."""
    has_agent = sections.pop("has_agent", False)
    async with running_world(
        home, monkeypatch, StoppedClock(MORNING), has_agent, **sections
    ) as world:
        yield world, await world.person()


async def told(person: Person, id_: str) -> dict[str, Any]:
    answer = await person.http.get(f"/api/why/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["trace_id"]
    return found


def on_the_page(heading: str) -> str:
    """Return the story under a heading of the page."""
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1]
    shown: str = re.findall(r"```text\n(.*?)```", section, re.S)[0]
    return shown


def assert_on_the_page(heading: str, command: str, answer: dict[str, Any]) -> None:
    """Compare a story with the page, or write it there if that is asked for."""
    lines = [f"$ vigil why {command}", *story(answer, width=WIDTH)]
    # The sequence depends on which service was first.
    text = re.sub(r"SESSIONS-\d+", "SESSIONS-12", "\n".join(lines) + "\n")
    text = re.sub(r"\b[0-9a-f]{32}\b", "0f343b0931126a20f133d67c2b018a3b", text)
    text = re.sub(r"\b(accept|reject) a\w{3}\b", r"\1 a7k2", text)
    shown = on_the_page(heading)
    if os.environ.get("VIGIL_WRITE_WHY"):
        before, after = PAGE.read_text("utf-8").split(f"\n## {heading}\n")
        after = after.replace(f"```text\n{shown}```", f"```text\n{text}```", 1)
        PAGE.write_text(f"{before}\n## {heading}\n{after}", "utf-8")
        return
    assert text == shown


async def test_a_follow_up_that_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-3: from what the person wrote to what was said, by the message's id."""
    async with morning(tmp_path, monkeypatch) as (world, ann):
        await ann.exchange("check back in 30 seconds")
        await world.advance(30)
        (said,) = [said for said in ann.talk.said if said.tag == AGENT_FOLLOW_UP]
        answer = await told(ann, said.id)
        assert (answer["kind"], answer["verdict"]) == ("message", "said")
        assert_on_the_page("A follow-up that was said", "MESSAGE_ID", answer)


async def test_a_follow_up_that_the_cap_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-3, S-7: it has no id of its own; the timer's name finds it, and the numbers are told."""
    async with morning(tmp_path, monkeypatch) as (world, ann):
        times = ("30 seconds", "1 minute", "90 seconds", "2 minutes")
        await ann.exchange(" and ".join(f"check back in {time}" for time in times))
        for _ in times:
            await world.advance(30)
        answer = await told(ann, "followup-4")
        assert (answer["kind"], answer["verdict"]) == ("timer", "blocked")
        assert_on_the_page("A follow-up that the cap blocked", "followup-4", answer)


async def test_a_follow_up_that_the_person_voided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-3, S-6: the message that came first is part of the story."""
    async with morning(tmp_path, monkeypatch) as (world, ann):
        await ann.exchange("check back in 60 seconds")
        await world.advance(20)
        await ann.exchange("I'm here already")
        await world.advance(60)
        answer = await told(ann, "followup-1")
        assert (answer["kind"], answer["verdict"]) == ("timer", "void")
        assert_on_the_page("A follow-up that you voided", "followup-1", answer)


# ---------------------------------------------------------------- workers and requests


async def test_what_a_worker_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-3, C-1: from the answer back to the order, with the worker told where it was started."""
    async with morning(tmp_path, monkeypatch, has_hands=True) as (world, ann):
        await ann.exchange("remember that my locker code is 4711")
        await ann.exchange("research my locker code in the background")
        await ann.talk.until(lambda: len(ann.talk.said) == 3)
        await world.at_rest()
        answer = await told(ann, ann.talk.said[-1].id)
        assert (answer["kind"], answer["verdict"]) == ("message", "said")
        assert {step["stream"] for step in answer["steps"]} == {"SESSIONS", "SYSTEM"}
        assert_on_the_page("What a worker found", "MESSAGE_ID", answer)


def clean_up(request: ModelRequest) -> ModelAnswer:
    """Want to run something because of what comes in, and say what came of it."""
    source = request.rows[-1].source
    if source == "external":
        call = ToolUseBlock(id="c1", name="shell", input={"command": "echo 3 files removed"})
        usage = Usage(model="scripted", input_tokens=1, output_tokens=1)
        return ModelAnswer(blocks=(call,), stop_reason="tool_use", usage=usage)
    return say("It is clean again." if source == "task" else "")


async def test_a_request_that_was_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-3, X-2, X-3: what came from outside may only run with leave; who gave it is told."""
    sections: dict[str, Any] = {"has_agent": True, "has_hands": True}
    async with morning(tmp_path, monkeypatch, **sections) as (world, ann):
        world.agent.behave = clean_up
        event = {
            "specversion": "1.0", "id": "1", "source": "https://ci.example/7", "type": "disk.full",
            "subject": ann.key, "data": "clean up",
        }  # fmt: skip
        headers = {"content-type": "application/cloudevents+json"}
        assert (await ann.http.post("/api/events", json=event, headers=headers)).is_success
        await ann.talk.until(lambda: ann.talk.said)
        await world.at_rest()
        (request,) = (await ann.http.get("/api/approvals")).json()["approvals"]
        verdict = {"verdict": "accept", "digest": request["digest"]}
        path = f"/api/approvals/{request['id']}"
        assert (await ann.http.patch(path, json=verdict)).is_success
        await ann.talk.until(lambda: len(ann.talk.said) == 2)
        await world.at_rest()
        answer = await told(ann, request["id"])
        assert (answer["kind"], answer["verdict"]) == ("approval", "accepted")
        assert_on_the_page("A request that you accepted", "APPROVAL_ID", answer)


# ---------------------------------------------------------------- a webhook that fails


@contextlib.asynccontextmanager
async def broken_receiver() -> AsyncIterator[int]:
    """A server that answers 500 to everything; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.I)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def test_a_follow_up_whose_webhook_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-3, S-10: said in the transcript, refused by the channel, a dead letter."""
    async with broken_receiver() as port:
        ops = {
            "url": f"http://127.0.0.1:{port}/", "secret": SECRET, "ports": [port],
            "allow_private": True, "attempts_max": 2, "backoff_base_s": 0.2,
        }  # fmt: skip
        sections = {"channels": {"ops": ops}, "person": {"channel": "ops"}}
        async with morning(tmp_path, monkeypatch, **sections) as (world, ann):
            await ann.exchange("check back in 30 seconds")
            await world.advance(30)
            (said,) = [said for said in ann.talk.said if said.tag == AGENT_FOLLOW_UP]
            attempts = ann.talk.key.attempt(said.id)
            await ann.talk.until(lambda: sum(m.subject == attempts for m in ann.talk.log) == 2)
            await world.advance(60)
            await ann.talk.until(lambda: ann.talk.receipts)
            answer = await settled(ann, said.id)
            assert answer["verdict"] == "failed"
            await assert_every_signal_has_a_story(ann)
            assert_on_the_page("A follow-up whose webhook failed", "MESSAGE_ID", answer)


async def assert_every_signal_has_a_story(ann: Person) -> None:
    """C-4: the id and the subject of each signal are what `vigil why` takes."""
    kinds: set[str] = set()
    async with asyncio.timeout(20):
        while "message.failed" not in kinds:
            answer = await ann.http.get("/api/signals?follow=false", headers={"last-event-id": "0"})
            signals = [
                json.loads(line.removeprefix("data:"))
                for line in answer.text.splitlines()
                if line.startswith("data:")
            ]
            kinds = {signal["kind"] for signal in signals}
            await asyncio.sleep(0.02)
    assert {"timer.scheduled", "timer.fired", "message.sent", "turn.committed"} <= kinds
    for signal in signals:
        if "session_key" not in signal:
            continue  # a bulletin may be due by then
        assert (await told(ann, signal["id"]))["kind"] == "signal"
        if "subject" in signal:
            story = await told(ann, signal["subject"])
            assert story["session_key"] == signal["session_key"]


async def settled(ann: Person, id_: str) -> dict[str, Any]:
    """Return the story once the dead letter, which follows the receipt, is part of it."""
    async with asyncio.timeout(20):
        while True:
            answer = await told(ann, id_)
            if any(step["what"] == "dead_letter" for step in answer["steps"]):
                return answer
            await asyncio.sleep(0.02)
