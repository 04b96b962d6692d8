"""The rehearsal model: a deterministic stand-in, so that every loop can be seen working.

It runs without a key and says what it is. It understands a handful of phrases and answers them
with real tool calls, and it goes on from the tools' real results. It reads no clock and rolls
no dice: the same rows and situation give the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from typing import Final

import msgspec

from vigil.contracts import Block, TextBlock, ToolUseBlock, Usage

from ...model import ModelAnswer, ModelRequest
from . import bulletins, cycles, summaries
from .conversation import reply
from .plans import plan
from .reflection import memories, summary
from .reply import Call, Reply, text_of

_WORDS: Final = re.compile(r"\S+\s*")
WORD: Final = 6
"""Letters."""


class RehearsalModel:
    """Answers a few phrases, word by word."""

    name: Final = "rehearsal"
    is_free: Final = True
    server: Final = None

    def __init__(self, *, word_ms: int) -> None:
        """`word_ms`: how long a word takes; 0 hands over the whole text at once."""
        self._word_s = word_ms / 1000

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer; never raises ModelError."""
        text, calls = ROLES.get(request.purpose, _reply)(request)
        if self._word_s and text and request.schema is None:
            await self._stream(text, on_text)
        elif text:
            on_text(text)
        blocks: tuple[Block, ...] = (TextBlock(text=text),) if text else ()
        return ModelAnswer(
            blocks=(*blocks, *_numbered(calls, request)) if calls else blocks,
            stop_reason="tool_use" if calls else "end_turn",
            usage=_usage(request, text),
        )

    async def _stream(self, text: str, on_text: Callable[[str], None]) -> None:
        for index, word in enumerate(_WORDS.findall(text)):
            if index:
                await asyncio.sleep(self._word_s)
            on_text(word)

    async def close(self) -> None:
        """Nothing is open."""


def _reply(request: ModelRequest) -> Reply:
    if cycles.is_cycle(request.session_key):
        return cycles.step(request.rows)
    return reply(request.rows, request.situation)


def _plan(request: ModelRequest) -> Reply:
    return plan(text_of(request.rows[0])), []


def _save(request: ModelRequest) -> Reply:
    return "", memories(text_of(request.rows[-1]))


def _report(request: ModelRequest) -> Reply:
    return cycles.report(request.rows), []


def _extracted(request: ModelRequest) -> Reply:
    return cycles.extracted(request.rows), []


def _look(request: ModelRequest) -> Reply:
    return cycles.look(request.rows), []


def _bulletin(request: ModelRequest) -> Reply:
    return bulletins.text(text_of(request.rows[0])), []


def _rewriting(request: ModelRequest) -> Reply:
    return summaries.joined(text_of(request.rows[0])), []


def _compact(request: ModelRequest) -> Reply:
    text = text_of(request.rows[-1])
    return summary(text), memories(text)


ROLES: Final[dict[str, Callable[[ModelRequest], Reply]]] = {
    "plan": _plan,
    "save": _save,
    "compact": _compact,
    "report": _report,
    "facts": lambda _: ("{}", []),
    "extraction": _extracted,
    "mind": _look,
    "bulletin": _bulletin,
    "rewriting": _rewriting,
}
"""What is answered to a question that is no step of a loop, by its purpose."""


def _numbered(calls: list[Call], request: ModelRequest) -> list[ToolUseBlock]:
    """Give each call an id that the session has not seen: it derives from the last row."""
    seed = hashlib.sha256(request.session_key.encode())
    seed.update(len(request.rows).to_bytes(4, "big"))
    seed.update(msgspec.json.encode(request.rows[-1:]))
    prefix = f"toolu_rehearsal_{seed.hexdigest()[:16]}"
    return [
        ToolUseBlock(id=f"{prefix}_{index}", name=name, input=arguments)
        for index, (name, arguments) in enumerate(calls)
    ]


def _usage(request: ModelRequest, text: str) -> Usage:
    """Take a word of English for a token: six letters, with the blank."""
    letters = sum(map(len, request.system)) + request.counted.size + len(request.present)
    output = text.count(" ") + 1 if text else 0
    return Usage(model=RehearsalModel.name, input_tokens=-(-letters // WORD), output_tokens=output)
