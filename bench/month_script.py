"""What the model of a simulated month answers, and how much it writes. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from tests.support.messages_replies import Reply, said, says

BYTES_PER_TOKEN: Final = 4
THOUGHT_TOKENS: Final = 150
"""What it thinks before it writes, in each call."""
SENTENCE: Final = "Of what is open, the review on Thursday matters most, and Ben knows of it. "
LONG: Final = SENTENCE * 12
SHORT: Final = SENTENCE * 4
FACT: Final = "On that day the person said that the review takes place on Thursday, with Ben."
DECISION: Final = {
    "type": "no_action", "because": "Nothing of it needs the person today.", "confidence": 0.9,
}  # fmt: skip
TEXTS: Final = {
    "You write down, for an agent": LONG * 2,
    "You write down anew": SHORT,
    "A run of a job of the timetable is over": json.dumps({"memories": []}),
    "You look after things for": json.dumps({"decisions": [DECISION]}),
}
"""Of a bulletin, of a merged summary, what a run came across, and what a mind decides."""
RECHECK_AFTER: Final = timedelta(hours=4)


class Script:
    """Answers by what a request is for: its prompt says so."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def reply(self, body: dict[str, Any]) -> Reply:
        prompt = "\n".join(block["text"] for block in body.get("system", []))
        if "A cycle of yours is over" in prompt:
            return says(self._cycle_report(body), chunk=400)
        for begins, text in TEXTS.items():
            if begins in prompt:
                return says(text, chunk=400)
        if "has paused" in prompt:
            return _using(body, ("memory_save", {"content": FACT, "type": "fact"}))
        if "has grown too long" in prompt:
            return says(f"<summary>{LONG}</summary>", chunk=400)
        return _step(body, prompt)

    @staticmethod
    def output_tokens(reply: Reply) -> int:
        """Return how many tokens of output an answer counts."""
        return THOUGHT_TOKENS + len(json.dumps(reply.blocks)) // BYTES_PER_TOKEN

    def _cycle_report(self, body: dict[str, Any]) -> str:
        """Report; look again at what failed."""
        is_bad = "error." in _text(body) or "failed" in _text(body)
        again = [{"what": "CI of main", "at": (self._now() + RECHECK_AFTER).isoformat()}]
        return json.dumps(
            {
                "checked": ["tasks", "what was said", "CI of main"],
                "found": ["The review on Thursday is prepared."],
                "deferred": [],
                "recheck": again if is_bad else [],
            }
        )


def _step(body: dict[str, Any], prompt: str) -> Reply:
    """Answer in a loop: look first where that is worth it, keep what was found, then write."""
    messages = said(body)
    done = _calls_since_asked(messages)
    if "# This cycle" in prompt:
        looks: tuple[tuple[str, dict[str, Any]], ...] = (("task_list", {}), ("list_memory", {}))
        keeps = ("memory_save", {"content": FACT, "type": "fact"})
        if done > 1:
            return says(SHORT)
        return _using(body, keeps) if done else _using(body, *looks)
    if "# This task" in prompt and done <= _is_shown_first(messages):
        return _using(body, ("task_list", {}))
    asked = _text(body, last=True)
    if "[Outside event]" in asked:
        return says(SHORT) if "failed" in asked else Reply()
    if not done and "tasks" in asked:
        return _using(body, ("task_list", {}))
    return says(LONG, chunk=400)


def _calls_since_asked(messages: list[dict[str, Any]]) -> int:
    """Return how many times it called tools since it was last told something."""
    count = 0
    for message in reversed(messages):
        kinds = {block["type"] for block in message["content"]}
        if message["role"] == "user" and "tool_result" not in kinds:
            break
        count += "tool_use" in kinds
    return count


def _is_shown_first(messages: list[dict[str, Any]]) -> bool:
    """Whether a session begins with what earlier runs found, as if it had asked for it."""
    opening = messages[1]["content"] if len(messages) > 1 else []
    return any(block.get("id", "").startswith("found_") for block in opening)


def _using(body: dict[str, Any], *wanted: tuple[str, dict[str, Any]]) -> Reply:
    """Call those of the tools that are offered; write if none is."""
    offered = {tool["name"] for tool in body.get("tools", [])}
    seed = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:16]
    blocks = tuple(
        {"type": "tool_use", "id": f"toolu_{seed}_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(wanted)
        if name in offered
    )
    return Reply(blocks=blocks) if blocks else says(SHORT)


def _text(body: dict[str, Any], *, last: bool = False) -> str:
    messages = said(body)[-1:] if last else said(body)
    return "\n".join(
        block["text"] for one in messages for block in one["content"] if block["type"] == "text"
    )
