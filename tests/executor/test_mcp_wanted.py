"""What an MCP server may want of the person in the middle of a call, and how often (S12)."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from msgspec.structs import replace

from services.executor.mcp.tools import ANSWERS_MAX, wanted_of
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
