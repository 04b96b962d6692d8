"""A night of 18 cycles and the morning after it: scenarios 1, 2 and 3 of seed 000 (SPEC C-2, C-7).

Everything is real but the model's mind, which is a script behind the Messages API, and the clock.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from services.executor import builtin
from services.executor.own_tools.http_get import Fetcher
from services.scheduler.timetable import clock as timetable
from services.scheduler.timetable.cycle import NOTHING_NEW
from services.scheduler.timetable.kinds.autonomy import FIRST_AFTER
from services.scheduler.timetable.kinds.bulletin import UNCHANGED
from tests.support.agent import Agent
from tests.support.due import decided, newest, row_of, slots
from tests.support.evening import Web, running_web
from tests.support.executing import has_offered
from tests.support.gateway import Gate
from tests.support.messages_api import MessagesApi, messages_api
from tests.support.messages_replies import Reply, said, says
from tests.support.obedient import call, has_words, texts_of
from tests.support.pauses import pauses
from tests.support.stack import running_stack
from tests.support.world import SERVICES, Person, StoppedClock, World
from vigil.net.ssrf import Rules

CYCLES: Final = 18
HALF_HOUR_S: Final = 1800
ISSUES: Final = "2 new issues on spacebot: #423 memory leak, #424 docs"
FAILURE: Final = "CI of main fails since abc123: test_memory_search"
TASK: Final = "Investigate the CI failure: test_memory_search"
ALICE: Final = "Alice wrote that her contract ends on Friday"
MAILS: Final = (ALICE, "Bob moves the API meeting to Tuesday", "A review of PR 420 is asked for",
                "Newsletter: 20 % off", "Newsletter: tips of the week")  # fmt: skip
COMMAND: Final = "echo spacebot > checked"
COUNT: Final = "echo 2 > issues"
QUESTION: Final = "Is the runner of main yours?"
MARKS: Final = {
    "cycle": "You keep up with the world",
    "report": "A cycle of yours is over",
    "bulletin": "You write down, for an agent",
    "reader": "You look things up on the web",
    "worker": "You are a worker",
    "job": "You run a job of the timetable",
    "extraction": "A run of a job of the timetable is over",
}
"""By which words of its prompt a request is told."""


class Mind:
    """What the model thinks of in that night."""

    def __init__(self, clock: StoppedClock, look: str) -> None:
        self._clock = clock
        self._look = look
        self.cycles = 0
        self.shown: list[tuple[str, str]] = []
        """Kind of each request, of a cycle with its number, and all that it was shown."""
        self.told: list[str] = []
        """What each cycle began with."""

    def reply(self, body: dict[str, Any]) -> Reply:
        prompt = "\n".join(part["text"] for part in body["system"])
        messages = said(body)
        words = "\n".join(text for message in messages for text in texts_of(message))
        kind = next((kind for kind, mark in MARKS.items() if mark in prompt), "talk")
        done = sum(message["role"] == "assistant" for message in messages) - was_recalled(messages)
        if kind == "cycle" and not done:
            self.cycles += 1
            self.told.append(words)
        name = f"{kind} {self.cycles}" if kind in ("cycle", "report") else kind
        self.shown.append((name, f"{prompt}\n{words}"))
        asked = "\n".join(texts_of([one for one in messages if has_words(one)][-1]))
        notes = [line[4:] for line in words.splitlines() if line.startswith("| - ")]
        answers: dict[str, Callable[[], Reply]] = {
            "cycle": lambda: self._work(body, done),
            "report": lambda: says(json.dumps(self._report())),
            "bulletin": lambda: says("\n".join(notes), chunk=400),
            "reader": lambda: says(words) if done else call(body, [_get(self._look)]),
            "worker": lambda: self._check(body, messages, asked),
            "job": lambda: self._brief(body, messages),
            "extraction": lambda: says(json.dumps({"memories": []})),
            "talk": lambda: _talk(body, messages, asked),
        }
        return answers[kind]()

    def _work(self, body: dict[str, Any], done: int) -> Reply:
        """Look at the issues first, find the failure in the seventh cycle, mails in the tenth."""
        steps: dict[int, list[list[tuple[str, Any]]]] = {
            1: [[("research", {"task": self._look})], [_save(ISSUES, "event")]],
            7: [
                [("spawn_worker", {"task": "Check CI"})],
                [
                    _save(FAILURE, "event"),
                    ("task_create", {"title": TASK, "description": FAILURE, "priority": "high"}),
                ],
            ],
            10: [
                [("list_memory", {"source": "chat:mail"})],
                [_save(f"5 mails, 1 urgent: {ALICE}. 2 newsletters", "observation")],
            ],
        }
        wanted = steps.get(self.cycles, [[("task_list", {})]])
        return call(body, wanted[done]) if done < len(wanted) else says("That was it.")

    @staticmethod
    def _check(body: dict[str, Any], messages: list[dict[str, Any]], asked: str) -> Reply:
        """Try what needs leave, and ask what nobody is there to answer; then go on without."""
        if "Check CI" not in asked:
            return says("It passes again.")
        if has_words(messages[-1]):
            wanted = {"command": COMMAND}
            return call(body, [("shell", wanted), ("ask_user", {"question": QUESTION})])
        return says(FAILURE)

    def _brief(self, body: dict[str, Any], messages: list[dict[str, Any]]) -> Reply:
        """Read what was found, and the page; try to run a command on it, and tell what is known."""
        shown = [json.dumps(one["content"]) for one in messages]
        if not any("cortex:autonomy" in one for one in shown):
            notes = ("list_memory", {"source": "cortex:autonomy", "limit": 50})
            return call(body, [notes, _get(self._look)])
        results = "\n".join(text for one in messages for text in texts_of(one))
        if not any(COUNT in one for one in shown):
            return call(body, [("shell", {"command": COUNT})])
        found = [one for one in (ISSUES, FAILURE, ALICE) if one in results]
        return says(f"Good morning. {'. '.join(found)}.")

    def _report(self) -> dict[str, Any]:
        again = (self._clock.now() + timedelta(minutes=25)).isoformat()
        is_last = self.cycles >= CYCLES
        return {
            "checked": ["CI of main"],
            "found": [] if self.cycles in (1, 7, 10) else ["CI is looked at"],
            "deferred": ["the docs"],
            "recheck": [] if is_last else [{"what": "CI of main", "at": again}],
        }


def was_recalled(messages: list[dict[str, Any]]) -> bool:
    """Whether a cycle begins with what memory has of those before it, which it didn't ask for."""
    return any('"since"' in json.dumps(one["content"]) for one in messages[:2])


def _get(look: str) -> tuple[str, Any]:
    return "http_get", {"url": look}


def _save(content: str, kind: str) -> tuple[str, Any]:
    return "memory_save", {"content": content, "type": kind}


def _talk(body: dict[str, Any], messages: list[dict[str, Any]], asked: str) -> Reply:
    results = "" if has_words(messages[-1]) else "\n".join(texts_of(messages[-1]))
    if "[Outside event]" in asked:
        mail = next(one for one in MAILS if one in asked)
        is_kept = not results and "Newsletter" not in mail
        return call(body, [_save(mail, "event")]) if is_kept else Reply()
    if "approve" in asked:
        return _approve(body, results)
    if "emails" in asked and not results:
        return call(body, [("list_memory", {"source": "cortex:autonomy"})])
    return says(f"One: {ALICE}" if ALICE in results else "I see.")


def _approve(body: dict[str, Any], results: str) -> Reply:
    """Try to let the task begin; tell who can."""
    found = re.search(r"([0-9a-f]{32}) pending_approval", results)
    if found is not None:
        return call(body, [("task_update", {"id": found[1], "status": "ready"})])
    return says(results) if results else call(body, [("task_list", {})])


@asynccontextmanager
async def running(
    home: Path, patch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[World, Mind, MessagesApi]]:
    patch.setattr(timetable, "POLL_S", 0.05)
    clock = StoppedClock()
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    clock.move((midnight - clock.now()).total_seconds())
    services = (*SERVICES, "executor")
    async with running_web(has_pages=True) as web:
        look = f"{web.url}/page/issues"
        patch.setattr(Web, "_answer", lambda *_: ("text/plain", ISSUES.encode()))
        mind = Mind(clock, look)
        rules = Rules(ports=(web.port,), allow_private=True)
        # All of http_get is as it is, but for where it may go: this page is on this machine.
        patch.setattr(builtin, "Fetcher", lambda _, **more: Fetcher(rules, **more))
        async with messages_api(mind.reply) as api:
            sections: dict[str, Any] = {
                "model": {"main": "claude-test"},
                "budget": {"daily_tokens": 10**12},
                "cortex": {"autonomy_enabled": True, "bulletin_synthesis": True},
                "agent": {"looks": [{"what": look, "every_s": 7 * 86_400}]},
            }
            async with running_stack(home, services, clock, api.url, **sections) as stack:
                gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
                world = World(gate, Agent(), clock, services)
                following = asyncio.create_task(world.follow())
                await has_offered(gate.admin)
                try:
                    yield world, mind, api
                finally:
                    following.cancel()
                    await gate.close()


async def mails_come(world: World) -> None:
    """Five mails come in; what matters is kept, and known to be."""
    talk = world.talk("ann:vigil:mail")
    for mail in MAILS:
        before = await newest(world, "ann", "memory.saved")
        await talk.ended(await talk.outside(mail))
        async with asyncio.timeout(40):
            pause_s = pauses()
            while "Newsletter" not in mail and await newest(world, "ann", "memory.saved") == before:
                await asyncio.sleep(next(pause_s))


async def the_night(world: World, person: Person) -> dict[str, Any]:
    """18 cycles, one each half hour; return their row."""
    assert isinstance(world.clock, StoppedClock)
    row = await row_of(person.http, "autonomy")
    await row_of(person.http, "bulletin")
    world.clock.move(FIRST_AFTER.total_seconds())
    for number in range(1, CYCLES + 1):
        ended = (await slots(person.http, row, 2 * number))[-1]
        assert ended["state"] == "ran", ended
        if number == 9:
            await mails_come(world)
        if number < CYCLES:
            world.clock.move(HALF_HOUR_S)
    return row


async def test_a_night_is_worked_through_and_told_in_the_morning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (world, mind, api):
        assert isinstance(world.clock, StoppedClock)
        ann = await world.person("ann:vigil:main", has_socket=False)
        await ann.exchange("Hello")
        job = {"name": "briefing", "prompt": "Brief me on the night.", "cron": "0 9 * * *",
               "zone": "UTC", "is_stateful": True}  # fmt: skip
        assert (await ann.http.post("/api/cron", json=job)).status_code == 201
        row = await the_night(world, ann)

        # Each cycle knows what the one before put off, and what is to be looked at again.
        assert "This is your first cycle." in mind.told[0]
        assert "content from outside had a part in" in mind.told[1]
        for told in mind.told[2:7]:
            assert "To look at again now:\n- CI of main" in told
            assert "put off: the docs" in told
        assert "- 3 memory.saved (chat)" in mind.told[9]

        # What was found is a task that waits, and is known to every conversation.
        (task,) = (await ann.http.get("/api/tasks")).json()["tasks"]
        assert (task["title"], task["status"], task["priority"]) == (
            TASK, "pending_approval", "high",
        )  # fmt: skip
        world.clock.move(HALF_HOUR_S)  # 9:01:30
        bulletin = (await ann.http.get("/api/bulletin")).json()["bulletins"][0]
        assert f"- pending_approval, 1: {TASK}" in bulletin["text"]
        assert FAILURE in bulletin["text"]
        assert ALICE not in bulletin["text"]
        assert ISSUES not in bulletin["text"]
        assert "3 chat:, 2 cortex:autonomy" in bulletin["text"], "sources by their kinds"
        assert ALICE in bulletin["from_outside"]

        # Nine o'clock.
        await world.until(lambda: any("Good morning." in one.text for one in ann.talk.said))
        (briefing,) = (one.text for one in ann.talk.said if "Good morning." in one.text)
        assert all(one in briefing for one in (ISSUES, FAILURE, ALICE))

        # What needed her was asked, held nothing up, and is done once she says so.
        requests = (await ann.http.get("/api/approvals")).json()["approvals"]
        wanted = {("shell", COMMAND), ("ask_user", QUESTION), ("shell", COUNT)}
        assert {(one["tool"], *one["input"].values()) for one in requests} == wanted
        for one in requests:
            is_question = one["tool"] == "ask_user"
            verdict = (
                {"verdict": "answer", "text": "Yes."} if is_question else {"verdict": "accept"}
            )
            sent = await ann.http.patch(f"/api/approvals/{one['id']}", json=verdict)
            assert sent.status_code == 202, sent.text
        workspace = world.stack.settings.workspaces / "vigil" / "ann"
        made = [workspace / name for name in ("checked", "issues")]
        await world.until(lambda: all(file.exists() for file in made))
        for ended, count in (("you answered", 1), ("you accepted", 2)):
            await world.until(lambda e=ended, n=count: _said(ann, e) == n)  # type: ignore[misc]

        # The next conversation knows, and the person lets it begin.
        desk = await world.person("ann:vigil:desk", has_socket=False)
        await desk.exchange("What is going on?")
        shown = next(text for kind, text in reversed(mind.shown) if kind == "talk")
        assert f"pending_approval, 1: {TASK}" in shown
        await desk.exchange("Then approve it.")
        path = f"/api/tasks/{task['id']}"
        assert (await ann.http.get(path)).json()["status"] == "pending_approval", "a model can't"
        assert "Only the person lets it begin" in desk.talk.said[-1].text
        assert (await ann.http.patch(path, json={"status": "ready"})).status_code == 200
        async with asyncio.timeout(40):
            pause_s = pauses()
            while (await ann.http.get(path)).json()["status"] != "done":
                await asyncio.sleep(next(pause_s))
        query = await world.person("ann:vigil:query", has_socket=False)
        await query.exchange("Any important emails?")
        assert query.talk.said[-1].text == f"One: {ALICE}"

        # What others wrote was shown to those who asked for it, and to nobody else.
        assert {kind for kind, text in mind.shown if ALICE in text} <= {
            "talk", "cycle 10", "report 10", "job", "extraction",
        }  # fmt: skip
        assert {kind for kind, text in mind.shown if "#424" in text} <= {
            "talk", "cycle 1", "report 1", "reader", "job", "extraction",
        }  # fmt: skip
        assert not any(ALICE in one.text for one in desk.talk.said)

        # And then nothing happens any more: nothing is asked, and each slot says why.
        await quiet(world, ann, row, api)


def _said(person: Person, words: str) -> int:
    return sum(words in one.text for one in person.talk.said)


async def quiet(world: World, person: Person, row: dict[str, Any], api: MessagesApi) -> None:
    """Once all that happened is taken in, a night goes by: nothing is asked, and each slot says
    why."""
    asked = len(api.requests)
    rows = {NOTHING_NEW: row, UNCHANGED: await row_of(person.http, "bulletin")}
    is_settled = False
    for _ in range(12):
        await world.advance(3600)
        last = [(await slots(person.http, one, 2))[-2:] for one in rows.values()]
        told = [{entry["reason"] for entry in two} for two in last]  # that some were folded, too
        is_settled = all(map(set.__contains__, told, rows)) and len(api.requests) == asked
        asked = len(api.requests)
        if is_settled:
            break
    assert is_settled
    known = {reason: len(await slots(person.http, one, 1)) for reason, one in rows.items()}
    for _ in range(6):
        await world.advance(3600)
    for reason, one in rows.items():
        new = await decided(person.http, one, known[reason], 4)
        assert {entry["state"] for entry in new} <= {"skipped", "coalesced"}
        assert reason in {entry["reason"] for entry in new}
    assert len(api.requests) == asked
