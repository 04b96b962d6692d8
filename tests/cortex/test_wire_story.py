"""One story by each wire: a conversation with tools, memory, a worker, a follow-up and compaction.

The turns are the same whichever wire it was. What goes over each is recorded in `wires/`, byte
for byte but for ids, instants, the situation and filler; ``VIGIL_WRITE_WIRES=1`` records it again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.cortex.test_wires import WAYS
from tests.support.messages_api import MessagesApi, Reply, calls, says
from tests.support.messages_replies import said
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.contracts import Turn

RECORDED: Final = Path(__file__).parent / "wires"
SERVICES: Final = ("memory", "scheduler", "executor", "delivery", "cortex")
TRAIN: Final = "Ann's train to Basel leaves at nine"
TASK: Final = "the stops up to Basel"
STOPS: Final = "There are four stops."
FILLER: Final = "and so on, " * 1500
SUMMARY: Final = "Ann travels to Basel, which has four stops."
PACKED: Final = "Have you packed?"
USAGE: Final = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 40}
ANSWERS: Final = {
    "note the train": calls("memory_save", {"content": TRAIN, "type": "fact"}),
    "when is it": calls("memory_recall", {"query": "train to Basel"}, text="Let me see."),
    "count the stops": calls("spawn_worker", {"task": TASK}),
    "look in again": calls("schedule_followup", {"delay_seconds": 1, "reason": "ask on"}),
    "[Result]": says(STOPS),
    TASK: says("Olten, Liestal, Muttenz, Basel: 4."),
    "[Follow-up due]": says(PACKED),
}
"""What the model does at first when it reads such a thing."""
LATER: Final = {"count the stops": STOPS, "look in again": PACKED}
"""What is said on its own some time after that."""
_ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{12,64}\b"
    r"|followup-\d+"
)
_INSTANT: Final = re.compile(
    r"((Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day )?\d{4}-\d\d-\d\d"
    r"([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?)?"
)
_SITUATION: Final = re.compile(r'\[Situation\](?:[^"\\]|\\.)*')


def behave(body: dict[str, Any]) -> Reply:
    """Think as the story wants it."""
    return msgspec.structs.replace(_reply(body), usage=USAGE, chunk=60)


def _reply(body: dict[str, Any]) -> Reply:
    if [tool["name"] for tool in body.get("tools", [])] == ["memory_save"]:
        return says(f"<summary>{SUMMARY}</summary>")
    last = said(body)[-1]["content"]
    asked = "\n".join(block["text"] for block in last if block["type"] == "text")
    return next((reply for start, reply in ANSWERS.items() if start in asked), says("I see."))


async def told(home: Path, name: str) -> tuple[list[str], list[str]]:
    """Have the story happen by a wire; return its turns, and what went over the wire."""
    home.mkdir()
    sections: dict[str, Any] = {
        "model": {"main": "wired", "context_tokens": 20_400},
        "autonomy": {"cooldown_ms": 0},
        "executor": {"sandbox": "off"},
    }
    async with WAYS[name].running() as api:
        api.behave = behave
        sections["models"] = {
            "wired": {"provider": name, "model": "model-test", "base_url": api.url}
        }
        async with running_stack(home, SERVICES, **sections) as stack:
            talk = await Talk.open(stack, "ann:vigil:t1")
            await _talk(talk)
            await talk.close()
        shown = [turn for turn in talk.turns if turn.rows or turn.summary]
        return [_line(plain_of(turn)) for turn in shown], list(recorded(api))


async def _talk(talk: Talk) -> None:
    for asked in ("note the train", "when is it", "count the stops", "look in again"):
        await talk.ended(await talk.say(f"Please {asked}."))
        await talk.until(partial(_has_heard, talk, LATER.get(asked, "")))
    number = 0
    while not any(turn.summary for turn in talk.turns):
        number += 1
        assert number < 20
        await talk.ended(await talk.say(f"message {number}: {FILLER}"))


def _has_heard(talk: Talk, text: str) -> bool:
    return not text or text in talk.texts


def plain_of(turn: Turn) -> dict[str, Any]:
    """Return what a turn says and does, without places in the log."""
    effects = [msgspec.to_builtins(effect.payload) for effect in turn.effects]
    for payload in effects:
        payload.pop("fence", None)
        payload.pop("generation", None)
    return {
        "outcome": turn.outcome,
        "rows": [[row.role, row.source, row.blocks] for row in turn.rows],
        "effects": [
            [type(effect).__name__, payload]
            for effect, payload in zip(turn.effects, effects, strict=True)
        ],
        "notes": [note.code for note in turn.notes],
        "summary": turn.summary,
        "usage": turn.usage,
    }


def recorded(api: MessagesApi) -> Iterator[str]:
    """Return each request's last messages, and what it was answered; those of the worker last."""
    bodies = [request.body for request in api.requests]
    for body in sorted(bodies, key=lambda body: TASK in str(_messages(body)[0])):
        reply = behave(api.wire.read(body))
        events = [f"{name} {data}".strip() for name, data in api.wire.events(reply, body)]
        others = {key: value for key, value in body.items() if key not in ("system", "tools")}
        asked = others | {"messages": _messages(body)[-2:]}
        yield _line({"number": len(_messages(body)), "asked": asked, "answered": events})


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] != "system"]


def _line(value: Any) -> str:
    """Write a record in a line; ids are numbered in the order that they come in."""
    seen: dict[str, str] = {}
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    text = _INSTANT.sub("<then>", _SITUATION.sub("[Situation] …", text))
    text = re.sub(r"(and so on, ?)+", "…", text)
    return _ID.sub(lambda found: seen.setdefault(found[0], f"<{len(seen)}>"), text)


async def test_a_story_is_the_same_by_each_wire(tmp_path: Path) -> None:
    """C-9: tools, memory, a worker, a follow-up and compaction."""
    found = await asyncio.gather(*[told(tmp_path / name, name) for name in WAYS])
    stories = dict(zip(WAYS, found, strict=True))
    turns = [turns for turns, _ in stories.values()]
    assert turns[0] == turns[1]
    whole = "\n".join(turns[0])
    for part in (TRAIN, STOPS, PACKED, SUMMARY):
        assert part in whole
    for name, (_, lines) in stories.items():
        file = RECORDED / f"{name}.jsonl"
        if os.environ.get("VIGIL_WRITE_WIRES"):
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(lines) + "\n")
        assert lines == file.read_text().splitlines(), f"{file.name} has it otherwise"
