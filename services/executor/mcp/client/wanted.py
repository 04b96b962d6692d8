"""What a server wants of a person or a model in the middle of a call, and what it's told. Pure.

What it wants of a model (sampling) is a text to answer: no pictures, no tools, and nothing of other
servers. Which model, and how it is set, isn't the server's to say.
"""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
import msgspec

from vigil.contracts.tools import ServerAnswer, ServerQuestion
from vigil.net.ssrf import ANYWHERE, RequestRefused, target_of

from ..schemas import Unfit, fit, visible

WANTED_BYTES_MAX: Final = 16 * 1024
"""Of what a server says and sends along, that is shown to a person or given back."""
ANSWERS_MAX: Final = 8
"""Of a person in one call. Whoever declines isn't asked again."""


def wanted_of(
    asked: types.InputRequiredResult,
    given: dict[str, Any],
    before: ServerAnswer | None = None,
    tokens_max: int = 0,
) -> ServerQuestion | None:
    """Return what a server wants of the person, or of a model; None: it wants several things at
    once, or what it never gets, or was answered often enough.

    Args:
        given: the arguments of the call.
        before: what was said to what it wanted last.
        tokens_max: of a model's answer; 0: it gets none.
    """
    is_enough = before is not None and (
        before.action == "decline" or before.answered >= ANSWERS_MAX
    )
    if is_enough or asked.input_requests is None or len(asked.input_requests) != 1:
        return None
    ((name, request),) = asked.input_requests.items()
    found: ServerQuestion | None = None
    if isinstance(request, types.ElicitRequest):
        found = _form_of(request.params, given)
    elif isinstance(request, types.CreateMessageRequest) and tokens_max:
        found = _question_of(request.params, given, tokens_max)
    if found is None or len(msgspec.json.encode(found)) - _size(given) > WANTED_BYTES_MAX:
        return None
    answered = 0 if before is None else before.answered
    return msgspec.structs.replace(found, name=name, state=asked.request_state, answered=answered)


def _size(given: dict[str, Any]) -> int:
    return len(msgspec.json.encode(given))


def _form_of(params: types.ElicitRequestParams, given: dict[str, Any]) -> ServerQuestion | None:
    """Return what the person is to fill in, or to open; None: it can't be shown to them."""
    message = visible(params.message)
    if isinstance(params, types.ElicitRequestFormParams):
        if _size(params.requested_schema) > WANTED_BYTES_MAX:
            return None
        try:
            fit(params.requested_schema)
        except Unfit:
            return None
        return ServerQuestion(message=message, input=given, form=params.requested_schema)
    url = visible(params.url)
    return ServerQuestion(message=message, input=given, url=url) if _is_plain(url) else None


def _is_plain(url: str) -> bool:
    """Return whether a person can see where an address leads: it has no false front."""
    try:
        target_of(url, ANYWHERE)
    except RequestRefused:
        return False
    return True


def response_of(answered: ServerAnswer) -> types.InputResponse | None:
    """Return what a server is told of an answer, the person's or a model's; None: no model gave
    one, and a server of the protocol of 2026 can't be told that."""
    if answered.text is not None:
        return _result_of(answered.text) if answered.action == "accept" else None
    content = answered.content if answered.action == "accept" else None
    return types.ElicitResult(action=answered.action, content=content or None)


# ---------------------------------------------------------------- of a model

MODEL: Final = "vigil"
"""What a server is told that answered: not which, which is the person's affair."""
HOW: Final = "[how it wants to be answered]"
SAID: Final = {"user": "[it asks]", "assistant": "[it was answered before]"}


def _question_of(
    params: types.CreateMessageRequestParams, given: dict[str, Any], tokens_max: int
) -> ServerQuestion | None:
    """Return what a model is to answer; None: more than text is wanted, or nothing."""
    if params.tools or params.tool_choice is not None or params.max_tokens < 1:
        return None
    parts = [f"{HOW}\n{visible(params.system_prompt)}"] if params.system_prompt else []
    for message in params.messages:
        content = message.content if isinstance(message.content, list) else [message.content]
        texts = [one.text for one in content if isinstance(one, types.TextContent)]
        if len(texts) != len(content):
            return None
        parts.append(f"{SAID[message.role]}\n" + visible("\n".join(texts)))
    if not params.messages:
        return None
    return ServerQuestion(
        message="\n\n".join(parts), input=given, tokens_max=min(params.max_tokens, tokens_max)
    )


def _result_of(text: str) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text=text)
    return types.CreateMessageResult(
        role="assistant", content=content, model=MODEL, stop_reason="endTurn"
    )
