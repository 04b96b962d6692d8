"""An agent that does what a message asks, so that a test reads like a conversation.

``ask(follow_up("a", 30, "hi"))`` is the text of a message; the agent answers it with those tool
calls, then says "Done.". To anything else it answers "re: ..."; to a follow-up without a fixed
text it says the follow-up's reason. It keeps no state, so any number of sessions can share it.

It is as gullible as an agent can be: what an event from outside asks for, it tries to do, too.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final

from services.cortex.model import ModelAnswer, ModelRequest
from tests.support.scripted_model import ScriptedModel, say
from vigil.contracts import Row, TextBlock, ToolUseBlock, Usage

Call = tuple[str, dict[str, Any]]
"""A tool's name and its input."""
DONE: Final = "Done."
BEGINNINGS: Final = ("person", "timer", "external", "task")
_ASK: Final = "please do "
_REASON: Final = re.compile(r"^Reason you noted: (.*)$", re.MULTILINE)
"""How the prompt of a follow-up words its reason."""
_HEADING: Final = re.compile(r"^\[\w+\]\n\n")
"""How the prompt of a session that was started begins."""
_BARRED: Final = re.compile(r"^\| (.*)$", re.MULTILINE)
"""How the prompt of an event from outside shows its content."""


def follow_up(
    timer_id: str, in_s: float, message: str | None = None, *, keep: bool = False, reason: str = ""
) -> Call:
    """Come back in `in_s` seconds: with that text, or else by asking the agent again."""
    arguments: dict[str, Any] = {
        "timer_id": timer_id, "delay_seconds": in_s, "reason": reason or f"about {timer_id}",
        "keep": keep,
    }  # fmt: skip
    if message is not None:
        arguments["message"] = message
    return "schedule_followup", arguments


def tell(text: str, channel: str | None = None) -> Call:
    """Say something before the answer is finished."""
    return "send_message", {"text": text} | ({} if channel is None else {"channel": channel})


def cancel(timer_id: str) -> Call:
    """Take a follow-up or a reminder back."""
    return "cancel_followup", {"timer_id": timer_id}


def ask(*calls: Call) -> str:
    """Return the text that asks for these tool calls, all in one answer."""
    return ask_in_steps(list(calls))


def ask_in_steps(*steps: list[Call]) -> str:
    """Return the text that asks for tool calls in one model answer after another."""
    return _ASK + json.dumps(steps)


class Agent(ScriptedModel):
    """The agent; `held` names texts at which it thinks until `gate` is set."""

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.held: set[str] = set()
        self.thinking = asyncio.Event()
        """Set as soon as it thinks about a text in `held`."""

    @staticmethod
    def text_of(request: ModelRequest) -> str:
        """Return all that a request holds in words."""
        return "\n".join(map(_text_of, request.rows))

    async def _respond(self, request: ModelRequest) -> ModelAnswer:
        begin = max(i for i, row in enumerate(request.rows) if row.source in BEGINNINGS)
        text = _text_of(request.rows[begin])
        if text in self.held:
            self.thinking.set()
            await self.gate.wait()
        if not text.startswith(_ASK):
            return say(text if request.rows[begin].source == "timer" else f"re: {text}")
        step = sum(row.role == "assistant" for row in request.rows[begin:])
        steps = json.loads(text.removeprefix(_ASK))
        return _calls(steps[step], len(request.rows)) if step < len(steps) else say(DONE)


def _text_of(row: Row) -> str:
    text = "".join(block.text for block in row.blocks if isinstance(block, TextBlock))
    if row.source == "external":
        return "\n".join(_BARRED.findall(text.partition("\n|\n")[2]))
    if row.source == "task":
        return _HEADING.sub("", text)
    reason = _REASON.search(text) if row.source == "timer" else None
    return text if reason is None else reason[1]


def _calls(calls: list[Any], salt: int) -> ModelAnswer:
    blocks = tuple(
        ToolUseBlock(id=f"call_{salt}_{number}", name=name, input=arguments)
        for number, (name, arguments) in enumerate(calls)
    )
    usage = Usage(model="agent", input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=blocks, stop_reason="tool_use", usage=usage)
