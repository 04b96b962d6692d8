"""An answer of the Messages API, put together from the events of its stream. Pure.

An SDK puts one together, too, but what it makes of half the arguments of a call looks like a call
(`36` of `3600`), and it raises for arguments that are no JSON, for a count of tokens that is
missing, and for an event it doesn't know. Here an event is plain data, and only what is needed of
it is read.
"""

from __future__ import annotations

import json
from typing import Any, Final

from vigil.contracts import Block, OpaqueBlock, TextBlock

from ...model import ModelAnswer, ModelError, ModelRequest
from .. import answers
from ..answers import AnswerRoom, mend, plain, string
from ..parameters import unfenced
from .calls import CallIds, called

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class _Part:
    """A block in the making."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.data = start
        self._pieces: dict[str, list[str]] = {}

    def add(self, name: str, piece: str) -> None:
        self._pieces.setdefault(name, []).append(piece)

    def text(self, name: str) -> str:
        """Return a field of text with all that came for it."""
        return str(self.data.get(name) or "") + "".join(self._pieces.get(name, ()))

    @property
    def arguments(self) -> str:
        """The arguments of a call, as the model wrote them; some servers send them at once."""
        written = "".join(self._pieces.get("input", ()))
        return written if written.strip() else json.dumps(self.data.get("input") or {})


class GatheredMessage:
    """An answer as far as it came."""

    def __init__(self) -> None:
        self.room = AnswerRoom()
        self._parts: dict[int, _Part] = {}
        self._counts: dict[str, Any] = {}
        self._model: object = ""
        self._stop_reason: object = None
        self._is_begun = self._is_finished = False

    def take(self, event: Any) -> str:
        """Take the next event; return the text that it adds.

        Raises:
            ModelError: it can't be kept, or hasn't the shape of an event.
        """
        with answers.shaped():
            if event["type"].startswith("content_") and not self._is_begun:
                raise _out_of_order()
            match event["type"]:
                case "message_start":
                    self._is_begun = self.room.has_begun = True
                    self._model = event["message"].get("model")
                    self._count(event["message"].get("usage"))
                    self._counts.pop("output_tokens", None)  # of nothing said yet
                case "content_block_start":
                    return self._begin(event["index"], dict(event["content_block"]))
                case "content_block_delta":
                    return self._add(self._parts.get(event["index"]), event["delta"])
                case "message_delta":
                    self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                    self._count(event.get("usage"))
                case "message_stop":
                    self._is_finished = True
                case _:
                    pass  # a ping, or what is new
        return ""

    def _count(self, usage: Any) -> None:
        """Take counts of tokens; later ones are of all until then."""
        counts = {name: (usage or {}).get(name) for name in _COUNTS}
        self._counts |= {name: value for name, value in counts.items() if value is not None}

    def _begin(self, index: int, start: dict[str, Any]) -> str:
        self._parts[index] = _Part(start)
        if start["type"] == "text":
            return self._spoken(start.get("text") or "")
        self._take_size(start, is_argument=False)
        return ""

    def _add(self, part: _Part | None, delta: dict[str, Any]) -> str:
        if part is None:
            raise _out_of_order()
        match delta["type"]:
            case "text_delta":
                part.add("text", delta["text"])
                return self._spoken(delta["text"])
            case "input_json_delta":
                self._take_size(delta, is_argument=True)
                part.add("input", string(delta["partial_json"]))
            case "thinking_delta":
                self._take_size(delta, is_argument=False)
                part.add("thinking", delta["thinking"])
            case "signature_delta":
                self._take_size(delta, is_argument=False)
                part.data["signature"] = delta["signature"]
            case _:
                self._take_size(delta, is_argument=False)
        return ""

    def _spoken(self, text: str) -> str:
        return mend(text) if self.room.takes_text(mend(text)) else ""

    def _take_size(self, part: dict[str, Any], *, is_argument: bool) -> None:
        size = len(json.dumps(part, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        self.room.take(size, is_argument=is_argument)

    def answer(self, name: str, request: ModelRequest) -> ModelAnswer:
        """Return the whole answer of the model `name`.

        Raises:
            ModelError: it is half of one, hasn't the shape of one, or stopped without a word for a
                reason that is not known here.
        """
        answers.check_finished(self.room, is_finished=self._is_finished)
        with answers.shaped():
            ids = CallIds(request)
            parts = [self._parts[index] for index in sorted(self._parts)]
            blocks = [_block(part, ids) for part in parts]
            if request.schema is not None and len(blocks) == 1:
                blocks = [_unfenced(blocks[0])]
            usage = answers.usage_of(name, *(self._counts.get(each) for each in _COUNTS))
            answer = answers.received(blocks, usage, by=self._model)
        return answers.ended(answer, self._stop_reason, is_cut=self.room.is_full)


def _block(part: _Part, ids: CallIds) -> Block:
    data = part.data
    if data["type"] == "text":
        return TextBlock(text=string(mend(part.text("text"))))
    if data["type"] == "tool_use":
        return called(ids, str(data.get("id") or ""), str(data.get("name") or ""), part.arguments)
    if "thinking" in data:
        data["thinking"] = part.text("thinking")
    if "input" in data:  # of a tool of the provider's own
        data["input"] = json.loads(part.arguments)
    return OpaqueBlock(data=plain({key: each for key, each in data.items() if each is not None}))


def _unfenced(block: Block) -> Block:
    """Take off the fence of an answer that is to be JSON, and is one block of text."""
    return TextBlock(text=unfenced(block.text)) if isinstance(block, TextBlock) else block


def _out_of_order() -> ModelError:
    reason = "the model's server sent an answer out of order"
    return ModelError(reason, is_retryable=True, kind="unusable")
