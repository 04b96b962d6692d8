"""What an MCP server may want of the person in the middle of a call, and how often (S12)."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from msgspec.structs import replace

from services.executor.mcp.client.wanted import ANSWERS_MAX, wanted_of
from vigil.contracts.tools import ServerAnswer


def asks(**params: Any) -> types.InputRequiredResult:
    kind = types.ElicitRequestURLParams if "url" in params else types.ElicitRequestFormParams
    request = types.ElicitRequest(params=kind(message="Well?", **params))
    return types.InputRequiredResult(result_type="input_required", input_requests={"n": request})


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("https://pay.example/1", True),
        ("https://pay.example@bad.example/1", False),
        ("https://pаy.example/1", False),
        ("https://pay.example\\@bad.example", False),
        ("javascript:alert(1)", False),
        ("file:///etc/hostname", False),
        ("https://pay.example/" + "x" * 20_000, False),
    ],
)
def test_a_page_is_shown_if_one_sees_where_it_leads(url: str, is_shown: bool) -> None:
    found = wanted_of(asks(url=url, elicitation_id="e"), {})
    assert (found is not None) == is_shown


def test_a_person_is_asked_eight_times_in_a_call_at_most_and_not_after_they_declined() -> None:
    form = asks(requested_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    answered = None
    for count in range(ANSWERS_MAX):
        wanted = wanted_of(form, {}, answered)
        assert wanted is not None
        assert wanted.answered == count
        no = ServerAnswer(action="decline", answered=count + 1)
        assert wanted_of(form, {}, no) is None
        answered = replace(no, action="accept")
    assert wanted_of(form, {}, answered) is None


# ---------------------------------------------------------------- of a model


def sampling(content: Any = None, **params: Any) -> types.InputRequiredResult:
    said = content or types.TextContent(type="text", text="Sum\u202e it up")
    message = types.SamplingMessage(role="user", content=said)
    given = {"messages": [message], "max_tokens": 5000, **params}
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(**given))
    return types.InputRequiredResult(
        result_type="input_required", input_requests={"n": request}, request_state="s"
    )


def test_a_model_is_asked_in_words_and_within_its_bound() -> None:
    before = types.SamplingMessage(
        role="assistant", content=types.TextContent(type="text", text="No.")
    )
    asked = sampling(system_prompt="Be short", include_context="allServers", temperature=2.0)
    asked.input_requests["n"].params.messages.append(before)  # type: ignore[index,union-attr]
    found = wanted_of(asked, {"a": 1}, None, 300)
    assert found is not None
    assert found.message == (
        "[how it wants to be answered]\nBe short\n\n[it asks]\nSum it up\n\n"
        "[it was answered before]\nNo."
    )
    assert (found.tokens_max, found.name, found.state, found.input) == (300, "n", "s", {"a": 1})
    few = wanted_of(sampling(max_tokens=7), {}, None, 300)
    assert few is not None
    assert few.tokens_max == 7


PICTURE = types.ImageContent(type="image", data="aGk=", mime_type="image/png")
TOOL = types.Tool(name="x", input_schema={"type": "object"})


@pytest.mark.parametrize(
    ("asked", "tokens_max"),
    [
        (sampling(), 0),
        (sampling(PICTURE), 300),
        (sampling(messages=[]), 300),
        (sampling(max_tokens=0), 300),
        (sampling(tools=[TOOL]), 300),
        (sampling(tool_choice=types.ToolChoice(mode="none")), 300),
        (sampling(types.TextContent(type="text", text="x" * 20_000)), 300),
    ],
)
def test_what_else_it_wants_of_a_model_it_does_not_get(
    asked: types.InputRequiredResult, tokens_max: int
) -> None:
    assert wanted_of(asked, {}, None, tokens_max) is None


def test_a_model_is_asked_eight_times_in_a_call_at_most_and_not_after_it_gave_none() -> None:
    answered = None
    for count in range(ANSWERS_MAX):
        wanted = wanted_of(sampling(), {}, answered, 300)
        assert wanted is not None
        assert wanted.answered == count
        answered = ServerAnswer(action="accept", answered=count + 1, text="x")
    assert wanted_of(sampling(), {}, answered, 300) is None
    none = ServerAnswer(action="decline", answered=1, text="")
    assert wanted_of(sampling(), {}, none, 300) is None
