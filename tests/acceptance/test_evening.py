"""An evening that nobody watches, and the morning after it, by all services (LOOPS L2 to L4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from services.executor import builtin
from services.executor.own_tools.http_get import Fetcher
from tests.support.agent import Agent
from tests.support.evening import (
    QUESTIONS,
    SECTIONS,
    Evening,
    Web,
    attend,
    command,
    order,
    running_web,
    runs,
)
from tests.support.executing import has_offered
from tests.support.gateway import Gate
from tests.support.messages_api import messages_api
from tests.support.messages_replies import Reply
from tests.support.stack import running_stack
from tests.support.world import SERVICES, StoppedClock, World
from vigil.net.ssrf import Rules

PATIENCE_S: Final = 30.0


@asynccontextmanager
async def running(
    home: Path, monkeypatch: pytest.MonkeyPatch, model: Callable[[dict[str, Any]], Reply] = attend
) -> AsyncIterator[tuple[World, Web]]:
    services = (*SERVICES, "executor")
    async with running_web(has_pages=True) as web, messages_api(model) as api:
        rules = Rules(ports=(web.port,), allow_private=True)
        # All of http_get is as it is, but for where it may go: these pages are on this machine.
        monkeypatch.setattr(builtin, "Fetcher", lambda _, **more: Fetcher(rules, **more))
        sections = SECTIONS | {"search": {"url": web.url}}
        clock = StoppedClock()
        async with running_stack(home, services, clock, api.url, **sections) as stack:
            gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
            world = World(gate, Agent(), clock, services)
            following = asyncio.create_task(world.follow())
            await has_offered(gate.admin)
            try:
                yield world, web
            finally:
                following.cancel()
                await gate.close()


async def test_an_evening_unattended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L-6, L-8, L-9, L-12, C-8: what may go on does, what must not waits, and `why` tells it."""
    async with running(tmp_path, monkeypatch) as (world, web):
        evening = Evening(await world.gate.person("ann"), "ann", "e1", PATIENCE_S)
        workspaces = world.stack.settings.workspaces
        grant = await evening.allow()
        await evening.look_up()

        # What was looked up side by side is kept, as what it is: from outside.
        found = await evening.findings()
        assert all(one["is_tainted"] for one in found)
        assert sorted(web.read) == [f"e1-{number}" for number in range(QUESTIONS)]
        waiting = await evening.task("wait")
        assert (waiting["status"], waiting["is_tainted"]) == ("pending_approval", True)

        # What is granted runs, and what isn't is asked for: once, at home, with its short name.
        request = await evening.let_run()
        task = await evening.done()
        assert (runs(workspaces, "granted"), runs(workspaces, "asked")) == (1, 0)
        assert (await evening.allow())["uses"] == 1
        await world.at_rest()
        await world.advance(8 * 3600)
        asked = await evening.said_at_home(f"accept {request['name']}")
        assert command("asked", "e1-1") not in asked["text"], "it may be from outside"

        # In the morning a person says yes, in words.
        await evening.accept()
        ran = await evening.said_at_home("which you accepted, is done")
        await world.at_rest()
        assert (runs(workspaces, "granted"), runs(workspaces, "asked")) == (1, 1)
        assert (await evening.task("wait"))["status"] == "pending_approval"

        # `vigil why` tells of each.
        conversation = await evening.whole()
        for name in ("finding e1-0", "finding e1-1", "finding e1-2", "wait e1-0", "run e1-1"):
            assert name in conversation
        begun = await evening.why(task["id"])
        assert "A worker began the task" in begun
        assert grant["id"] in begun, "the grant was used"
        wanted = await evening.why(request["id"])
        assert "You accepted the request." in wanted
        assert "It had an accepted call run apart" in wanted
        assert "It waits for the next digest" in await evening.why(asked["id"])
        assert "reported of a errand (shell)" in await evening.why(ran["id"])


async def test_a_nightly_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L-8, L-9: what is allowed for one row runs in its runs and nowhere else; a run that has read
    an answer asks at home for the rest, and goes on without."""
    async with running(tmp_path, monkeypatch) as (world, web):
        night = Evening(await world.gate.person("ann"), "ann", "ann-night", PATIENCE_S)
        workspaces = world.stack.settings.workspaces
        page = order("http_get", url=f"{web.url}/page/{night.name}")
        body = {"name": "check", "prompt": page, "cron": "0 3 * * *", "zone": "UTC"}
        made = await night.ask("POST", "/api/cron", json=body)
        assert made.status_code == 201, made.text
        row = made.json()["id"]
        assert (await night.allow(row))["row"] == row
        await night.ask("POST", f"/api/cron/{row}/runs")
        told = await night.said_at_home("That is all.")
        assert web.read == [night.name], "it was fetched without asking"
        assert (runs(workspaces, "granted"), runs(workspaces, "asked")) == (1, 0)
        path, wanted = "/api/approvals", {"command": command("asked", night.name)}
        asked = await night.find(path, "approvals", lambda one: one["input"] == wanted)
        await world.at_rest()
        await world.advance(8 * 3600)
        await night.said_at_home(f"accept {asked['name']}")
        assert "reported of a cron" in await night.why(told["id"])

        # In a conversation the same page has no leave at all.
        await night.say(night.key, page, "ask")
        granted = {"command": command("granted", "x")}
        await night.find(path, "approvals", lambda one: one["session_key"] == night.key
                         and one["input"] == granted)  # fmt: skip
        await world.at_rest()
        there = (await night.ask("GET", path)).json()["approvals"]
        assert [one["id"] for one in there if one["input"] == wanted] == [asked["id"]], (
            "what is open at home isn't asked again"
        )
        assert runs(workspaces, "granted") == 1
        assert (await night.allow(row))["uses"] == 1


async def test_two_people_and_one_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-4, M-2, L-8: the same evening of two people, side by side; then one asks for all that there
    is of the other's, by name and by number, of an agent that does what it is told."""
    shown: list[str] = []

    def model(body: dict[str, Any]) -> Reply:
        shown.append(json.dumps(body))
        return attend(body)

    async with running(tmp_path, monkeypatch, model) as (world, _):
        ann, bob = [
            Evening(await world.gate.person(one), one, f"of{one}", PATIENCE_S)
            for one in ("ann", "bob")
        ]
        workspaces = world.stack.settings.workspaces / "vigil"
        await ann.allow()
        await asyncio.gather(spent(ann), spent(bob))
        assert [runs(workspaces / one, "granted") for one in ("ann", "bob")] == [1, 0]
        await ann.accept()
        await ann.said_at_home("which you accepted, is done")
        (file,) = [one for one in (workspaces / "ann").iterdir() if "asked" in one.name]
        file.write_text("the code ofann")
        left = file.name

        theirs = await ann.task("wait")
        await bob.say("bob:vigil:nosy", " ".join((
            order("memory_recall", query="finding"), order("task_list"),
            order("task_update", id=theirs["id"], status="ready"),
            order("read_file", path=f"../ann/{left}"),
            order("shell", command=f"cat ../ann/{left}"),
        )), "nosy")  # fmt: skip
        await bob.say(bob.home, f"accept {ann.request['name']}", "nosy-accept")
        await world.at_rest()
        assert (await ann.task("wait"))["revision"] == theirs["revision"]
        said = await bob.ask("GET", "/api/sessions/bob:vigil:nosy")
        assert len(said.json()["messages"]) > 1
        both = [one for one in shown if "ofann" in one.replace(left, "") and "ofbob" in one]
        assert not both
        assert [one for one in shown if left in one and "finding ofbob" in one], "his own he sees"
        for path in ("approvals?state=all", "cost", "cron", "grants?state=all", "jobs", "memories",
                     "sessions", "sessions/bob:vigil:main", "sessions/bob:vigil:nosy",
                     "signals?follow=false", "slots", "tasks"):  # fmt: skip
            answer = await bob.ask("GET", f"/api/{path}")
            assert answer.status_code == 200, (path, answer.text)
            assert "ann:vigil" not in answer.text, path
            assert "ofann" not in answer.text.replace(left, ""), path


async def spent(evening: Evening) -> None:
    """Let somebody's evening go on up to the request, and beyond without an answer."""
    await evening.look_up()
    await evening.findings()
    await evening.task("wait")
    await evening.let_run()
    await evening.done()
