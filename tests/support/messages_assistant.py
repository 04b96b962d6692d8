"""A script that acts as a real model would with Vigil's tools, behind the local Messages API."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from tests.support.messages_replies import Reply, calls, said, says, situation

_REMIND = re.compile(r"remind me in (\d+) (second|minute|hour)s? to (.+?)[.!?]?$", re.I | re.M)
_CHECK = re.compile(r"check back in (\d+) (second|minute|hour)s?", re.I)
_OPEN_ID = re.compile(r"^- id (\S+):", re.M)
_UNIT_S = {"second": 1, "minute": 60, "hour": 3600}


def scheduling_assistant(body: dict[str, Any]) -> Reply:
    """Act as a real model would with Vigil's tools: schedule, read the result, then answer."""
    content = said(body)[-1]["content"]
    text = "\n".join(b["text"] for b in content if b["type"] == "text")
    results = [b for b in content if b["type"] == "tool_result"]
    call_id = f"toolu_{hashlib.sha256(json.dumps(said(body)).encode()).hexdigest()[:16]}"
    if results and not text:
        return _after_tools(body, results)
    if text.startswith("[Follow-up due]"):
        return says("You asked me to look in again: how did it go?")
    if match := _REMIND.search(text):
        arguments: dict[str, Any] = {
            "delay_seconds": int(match[1]) * _UNIT_S[match[2].lower()],
            "reason": f"they asked to be reminded to {match[3]}",
            "message": f"Time to {match[3]}!",
            "keep": True,
        }
        return calls("schedule_followup", arguments, text="Let me set that up.", call_id=call_id)
    if match := _CHECK.search(text):
        arguments = {
            "delay_seconds": int(match[1]) * _UNIT_S[match[2].lower()],
            "reason": "they asked me to check back",
        }
        return calls("schedule_followup", arguments, call_id=call_id)
    if "never mind" in text.lower():
        return _cancel_all(body, call_id)
    return says(f"I heard you: {text[:200]}")


def _after_tools(body: dict[str, Any], results: list[dict[str, Any]]) -> Reply:
    failed = [str(r["content"]) for r in results if r.get("is_error")]
    if failed:
        return says(f"That did not work: {failed[0]}")
    called = [b for b in body["messages"][-2]["content"] if b["type"] == "tool_use"]
    if called[0]["name"] == "cancel_followup":
        return says("Done, I took it back.")
    delay_s = called[0]["input"].get("delay_seconds")
    return says(f"I will come back in {delay_s} seconds." if delay_s else "Done.")


def _cancel_all(body: dict[str, Any], call_id: str) -> Reply:
    ids = _OPEN_ID.findall(situation(body))
    if not ids:
        return says("There is nothing to take back.")
    blocks = tuple(
        {
            "type": "tool_use",
            "id": f"{call_id}_{index}",
            "name": "cancel_followup",
            "input": {"timer_id": timer_id},
        }
        for index, timer_id in enumerate(ids)
    )
    return Reply(blocks=blocks)
