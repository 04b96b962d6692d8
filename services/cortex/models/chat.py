"""Chat Completions: a request's body from history of any shape, an answer from its pieces. Pure.

History becomes what the Messages API accepts first (`messages`), which is stricter: what comes of
that, servers of this wire take, too. Texts go out as strings, unless files are among them, and
roles take turns, since the templates of many models know nothing else. Blocks that another wire's
server made for itself, as its thinking, stay here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from vigil.contracts import Block, TextBlock, ToolUseBlock, Usage

from ..model import ModelAnswer, ModelRequest
from . import answers
from .answers import AnswerRoom, count, mend
from .breakpoints import marked_messages, marked_system
from .inbound.calls import CallIds, called
from .messages import CACHE, EARLIER, NAME_MAX, ended, messages_of
from .parameters import TOOLS, WITHOUT_TOOLS, has_no_tools, in_words, unfenced
from .versions import takes_cache_breakpoints, takes_reasoning_effort

TOOL_NAME_MAX: Final = 64
ID_MAX: Final = 40
"""Characters of the id of a call that OpenAI's server takes: another model may have given a longer
one. A server of one's own gets its ids back as they are: some hold more than a name."""
PIECE_BYTES: Final = 60
"""What a piece of a tool call takes beside its words."""
FAILED: Final = "Error: "
"""Before the result of a tool that failed: this wire has no mark for that."""
BREAKPOINT: Final = {"mode": "explicit"}
CACHE_OPTIONS: Final = "prompt_cache_options"
CACHE_KEY: Final = "prompt_cache_key"
SCHEMA: Final = "response_format"
"""The parameter that a schema goes out in."""
_FILES: Final = ("image", "document")
"""Blocks of the Messages API that hold a file."""
_STOPS: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_LEARNED: Final = ("stream_options", SCHEMA, "reasoning_effort")
"""Parameters that some servers refuse; the call can be made without them."""

# ---------------------------------------------------------------- what goes out


def body_of(
    model: str, request: ModelRequest, *, is_own: bool = False, lacks: Collection[str] = ()
) -> dict[str, Any]:
    """Build the body of a request; what changes with every call comes last.

    Args:
        is_own: whether a server of one's own is asked, which knows `max_tokens` at least.
        lacks: parameters that its server doesn't take.
    """
    limit = "max_tokens" if is_own and "max_tokens" not in lacks else "max_completion_tokens"
    is_marked = not is_own and takes_cache_breakpoints(model) and CACHE_OPTIONS not in lacks
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            *_system(request, lacks, is_marked=is_marked),
            *chat_of(request, is_marked=is_marked, id_max=NAME_MAX if is_own else ID_MAX),
        ],
        limit: request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": name_of(tool.name),
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            }
            for tool in request.tools
        ]
    if request.schema is not None:
        schema = {"name": "answer", "schema": request.schema, "strict": True}
        body[SCHEMA] = {"type": "json_schema", "json_schema": schema}
    if request.effort and takes_reasoning_effort(model):
        body["reasoning_effort"] = request.effort
    if not is_own:
        body[CACHE_KEY] = _cache_key(request.session_key)
    if is_marked:
        body[CACHE_OPTIONS] = BREAKPOINT
    return {name: value for name, value in body.items() if name not in lacks}


def _cache_key(session_key: str) -> str:
    """Return what OpenAI's servers keep the calls of a session together by, where what was sent
    before is cached; it names nobody.

    Source: the pages "Prompt caching" and "Create chat completion" of its documentation, 2026-11.
    """
    return hashlib.sha256(session_key.encode()).hexdigest()[:32]


def name_of(tool: str) -> str:
    """Return a tool's name as this wire takes it: of a longer one the end is a hash, so that no
    two are the same.

    >>> name_of("send_message"), len(name_of("server__" + "x" * 80))
    ('send_message', 64)
    """
    return _within(tool, TOOL_NAME_MAX)


def _within(name: str, length_max: int) -> str:
    if len(name) <= length_max:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: length_max - 9]}_{mark}"


def refused(said: str, body: dict[str, Any]) -> frozenset[str]:
    """Return which parameters of a request its server refused that can be left out.

    >>> sorted(refused("Unknown parameter: 'stream_options'", {"stream_options": {}}))
    ['stream_options']
    >>> sorted(refused("Unsupported: 'max_tokens'. Use 'max_completion_tokens'", {"max_tokens": 1}))
    ['max_tokens']
    """
    found = {name for name in _LEARNED if name in said}
    if re.search(r"\buse\W+max_completion_tokens", said, re.IGNORECASE):
        found.add("max_tokens")
    if "prompt_cache_" in said:
        found |= {CACHE_OPTIONS, CACHE_KEY}
    if has_no_tools(said):
        found.add(TOOLS)
    return frozenset(found & body.keys())


def _system(
    request: ModelRequest, lacks: Collection[str], *, is_marked: bool
) -> Iterator[dict[str, Any]]:
    parts = [part for part in request.system if part.strip()]
    if request.schema is not None and SCHEMA in lacks:
        parts.append(in_words(request.schema))
    if request.tools and TOOLS in lacks:
        parts.append(WITHOUT_TOOLS)
    if is_marked and parts:
        blocks = marked_system([{"type": "text", "text": part} for part in parts])
        yield {"role": "system", "content": [_part(block) for block in blocks]}
    elif parts:
        yield {"role": "system", "content": "\n\n".join(parts)}


def chat_of(
    request: ModelRequest, *, is_marked: bool = False, id_max: int = NAME_MAX
) -> list[dict[str, Any]]:
    """Turn history, and the situation after it, into messages.

    Args:
        is_marked: whether the server is told what of it to cache (`breakpoints`). Then all texts
            but the model's are parts, so that one is the same whether it's marked or not.
        id_max: characters that the id of a call may have.
    """
    rows = messages_of(request.rows, request.files, has_thinking=False)
    if is_marked:
        rows = marked_messages(rows)
    history = ended(rows, request.present)
    sent = [one for message in history for one in _sent(message, is_marked=is_marked)]
    for one in sent:
        for call in one.get("tool_calls", ()):
            call["id"] = _within(call["id"], id_max)
        if "tool_call_id" in one:
            one["tool_call_id"] = _within(one["tool_call_id"], id_max)
    return sent


def _sent(message: dict[str, Any], *, is_marked: bool) -> Iterator[dict[str, Any]]:
    content = message["content"]
    text = "\n\n".join(block["text"] for block in content if block["type"] == "text")
    if message["role"] == "assistant":
        yield _answered(text, [block for block in content if block["type"] == "tool_use"])
        return
    for block in content:
        if block["type"] == "tool_result":
            yield _result(block, is_marked=is_marked)
    others = [block for block in content if block["type"] != "tool_result"]
    if others and (is_marked or any(block["type"] in _FILES for block in others)):
        yield {"role": "user", "content": [_part(block) for block in others]}
    elif text:
        yield {"role": "user", "content": text}


def _result(block: dict[str, Any], *, is_marked: bool) -> dict[str, Any]:
    told = (FAILED if block["is_error"] else "") + block["content"]
    parts = [_marked({"type": "text", "text": told}, block)]
    content = parts if is_marked else told
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}


def _part(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return _marked({"type": "text", "text": block["text"]}, block)
    source = block["source"]
    url = f"data:{source['media_type']};base64,{source['data']}"
    if block["type"] == "image":
        return _marked({"type": "image_url", "image_url": {"url": url}}, block)
    return _marked({"type": "file", "file": {"filename": block["title"], "file_data": url}}, block)


def _marked(part: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    """End what is cached at a part, if it does at the block that it's made of."""
    return part | {"prompt_cache_breakpoint": BREAKPOINT} if CACHE in block else part


def _answered(text: str, used: list[dict[str, Any]]) -> dict[str, Any]:
    if not used:
        return {"role": "assistant", "content": text or EARLIER}
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {
                "name": name_of(block["name"]),
                "arguments": json.dumps(block["input"], ensure_ascii=False),
            },
        }
        for block in used
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


# ---------------------------------------------------------------- what comes in


class _Call:
    """A tool call in the making."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def is_whole(self) -> bool:
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


class Gathered:
    """An answer as far as it came."""

    def __init__(self) -> None:
        self.room = AnswerRoom()
        self.model = ""
        self._finish: str | None = None
        self._usage: Any = None
        self._texts: list[str] = []
        self._is_declined = False
        self._calls: list[_Call] = []

    @property
    def is_finished(self) -> bool:
        return self._finish is not None

    def take(self, chunk: Any) -> str:
        """Take the SDK's next chunk; return the text that it adds.

        Raises:
            ModelError: it can't be kept, or hasn't the shape of a chunk.
        """
        self.room.has_begun = True
        with answers.shaped():
            self.model = getattr(chunk, "model", None) or self.model
            self._usage = getattr(chunk, "usage", None) or self._usage
            for choice in getattr(chunk, "choices", None) or ():
                if not getattr(choice, "index", None):
                    return self._take(choice)
        return ""

    def _take(self, choice: Any) -> str:
        self._finish = getattr(choice, "finish_reason", None) or self._finish
        delta = getattr(choice, "delta", None)
        if delta is None:
            return ""
        for piece in getattr(delta, "tool_calls", None) or ():
            self._take_call(piece)
        declined = getattr(delta, "refusal", None)
        self._is_declined = self._is_declined or bool(declined)
        text = "".join(_text(part) for part in (getattr(delta, "content", None), declined))
        if not text:
            return ""
        self._texts.append(text)
        return mend(text) if self.room.takes_text(mend(text)) else ""

    def _take_call(self, piece: Any) -> None:
        function = getattr(piece, "function", None)
        name = _text(getattr(function, "name", None))
        more = _text(getattr(function, "arguments", None))
        id_ = _text(getattr(piece, "id", None))
        size = PIECE_BYTES + sum(map(answers.size_of, map(mend, (id_, name, more))))
        self.room.take(size, is_argument=True)
        call = self._call_of(getattr(piece, "index", None), id_, name, more)
        call.id = call.id or id_
        call.name = call.name or name
        call.arguments.append(more)

    def _call_of(self, index: object, id_: str, name: str, more: str) -> _Call:
        """Return the call that a piece belongs to: that of its index, or of none the last one.

        Some servers send each call at once, all of them with the index 0, or with none: such a
        call begins with an id of its own or, where they have none or all have the same, once the
        one before is whole.
        """
        ours = [call for call in self._calls if index is None or call.index == index]
        if ours and not (id_ and ours[-1].id and id_ != ours[-1].id):
            is_new = not id_ or more.strip()  # not a repeated name in a last, empty piece
            is_next = name and ours[-1].name and is_new and ours[-1].is_whole()
            if not is_next:
                return ours[-1]
        self._calls.append(_Call(index))
        return self._calls[-1]

    def answer(self, name: str, request: ModelRequest) -> ModelAnswer:
        """Return the whole answer of the model `name`.

        Raises:
            ModelError: it is half of one, or hasn't the shape of one.
        """
        answers.check_finished(self.room, is_finished=self.is_finished)
        with answers.shaped():
            text = mend("".join(self._texts))
            if request.schema is not None:
                text = unfenced(text)
            calls = self._used(request)
            blocks: list[Block] = [TextBlock(text=text)] if text else []
            usage = usage_of(self._usage, name)
            answer = answers.received([*blocks, *calls], usage, by=self.model)
        stop_reason = self._stop_reason(has_calls=bool(calls))
        return answers.ended(answer, stop_reason, is_cut=self.room.is_full)

    def _stop_reason(self, *, has_calls: bool) -> str:
        reason = _STOPS.get(str(self._finish)) or f"finish_reason {self._finish}"
        if reason in ("end_turn", "tool_use"):  # many servers stop for calls, too
            reason = "tool_use" if has_calls else "end_turn"
        return "refusal" if self._is_declined and reason == "end_turn" else reason

    def _used(self, request: ModelRequest) -> list[ToolUseBlock]:
        """Return the calls. Of an answer that was cut short, half a call is left out."""
        is_short = self.room.is_full or self._finish in ("length", "content_filter")
        names = {name_of(tool.name): tool.name for tool in request.tools}
        ids = CallIds(request)
        found = []
        for call in self._calls:
            name = mend(call.name)
            used = called(ids, call.id, names.get(name, name), "".join(call.arguments))
            if not (is_short and used.malformed):
                found.append(used)
        return found


def _text(value: object) -> str:
    """Return text of a piece; half a character may be in it. Raises: TypeError."""
    if value is not None and not isinstance(value, str):
        raise TypeError("text expected")
    return value or ""


def usage_of(usage: Any, model: str) -> Usage:
    """Return what a call took; here the cached tokens are a part of those that were sent."""
    details = getattr(usage, "prompt_tokens_details", None)
    sent, said = (getattr(usage, f"{each}_tokens", None) for each in ("prompt", "completion"))
    cached = min(count(getattr(details, "cached_tokens", None)), count(sent))
    written = min(count(getattr(details, "cache_write_tokens", None)), count(sent) - cached)
    whole = answers.usage_of(model, sent, said, cached, written)
    rest = max(whole.input_tokens - cached - written, 0)
    return msgspec.structs.replace(whole, input_tokens=rest)
