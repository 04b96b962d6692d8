"""An MCP server that wants a model's answer in the middle of a call: the executor's part (C-1)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import mcp_types as types
import pytest

from services.executor.mcp.client import held as holding
from services.executor.tools.source import ToolOutput
from tests.executor.test_mcp_servers import everything
from tests.executor.test_mcp_web import Site, serving, using
from tests.support.mcp_client import Hands, hands, nasty, sandbox
from vigil.contracts.tools import ServerAnswer

SUM = "nasty__summarise"


async def answered(found: Hands, first: ToolOutput, name: str, given: Any, **of: Any) -> ToolOutput:
    """Go on with a call as the session that made it would."""
    wanted = first.wanted
    assert wanted is not None
    about = {"name": wanted.name, "state": wanted.state, "answered": wanted.answered + 1}
    return await found.run(found.tool(name), given, ServerAnswer(**about, **of))


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_what_a_server_wants_is_told_and_it_goes_on(tmp_path: Path, era: str) -> None:
    """By both protocols; what it isn't given, it's told."""
    section = nasty(era, "samples", sampling_tokens=300)
    async with hands(tmp_path, await sandbox(), nasty=section) as found:
        first = await found.call(SUM, text="tea")
        assert (first.is_error, first.is_tainted) == (True, True)
        assert first.wanted is not None
        assert first.wanted.message.endswith("[it asks]\nSum up: tea")
        assert first.wanted.tokens_max == 300
        told = await answered(found, first, SUM, {"text": "tea"}, action="accept", text="Warm.")
        assert told.content == "tea: Warm."
        assert told.is_tainted

        second = await found.call(SUM, text="milk")
        told = await answered(found, second, SUM, {"text": "milk"}, action="decline", text="")
        none = "no model answers that" if era == "legacy" else "got none; it did not go on"
        assert none in told.content
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_none_is_asked_unless_the_configuration_says_so(tmp_path: Path, era: str) -> None:
    """Off by default: a server that asks all the same gets nothing, and its call ends."""
    async with hands(tmp_path, await sandbox(), nasty=nasty(era, "samples")) as found:
        told = await found.call(SUM, text="tea")
        assert told.wanted is None
        assert "Warm" not in told.content
        assert (await found.call("nasty__add", a=1, b=2)).content == "3"


async def test_a_call_that_nobody_goes_on_with_is_in_no_ones_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C-1: by the protocol of 2025 it is held open, and a server may ask for one call at a time: it
    got no answer to any other for a day, nor afterwards."""
    monkeypatch.setattr(holding, "SAMPLED_S", 0.0)
    held = holding.HeldCalls()
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
    params = types.CreateMessageRequestParams(messages=[said], max_tokens=9)

    async def sent(told: Any) -> Any:
        return await held.sampled(cast(Any, None), params)

    for _ in range(2):
        call = held.begin(sent)
        assert isinstance(await call.next(), types.InputRequiredResult)
        async with asyncio.timeout(10):
            assert isinstance(await call.task, types.ErrorData)


@pytest.mark.parametrize(
    "is_web", [False, pytest.param(True, marks=pytest.mark.long)], ids=["stdio", "http"]
)
async def test_the_everything_server_samples(tmp_path: Path, is_web: bool) -> None:
    """X-1: a server of others, as it comes, by either transport; without leave it doesn't even
    offer that."""
    async with (
        everything(is_web=is_web) as section,
        hands(tmp_path, await sandbox(), every=section | {"sampling_tokens": 100}) as found,
    ):
        name, given = "every__trigger-sampling-request", {"prompt": "Hi", "maxTokens": 20}
        first = await found.call(name, **given)
        assert first.wanted is not None
        assert "Resource trigger-sampling-request context: Hi" in first.wanted.message
        assert first.wanted.tokens_max == 20
        told = await answered(found, first, name, given, action="accept", text="Ho")
        assert '"text": "Ho"' in told.content


class Sampling(Site):
    """A server of 2026 over HTTP that has a model answer before it does."""

    async def call_tool(  # type: ignore[override]
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if not params.input_responses:
            said = types.TextContent(type="text", text="Sum it up.")
            asked = types.CreateMessageRequestParams(
                messages=[types.SamplingMessage(role="user", content=said)], max_tokens=50
            )
            return types.InputRequiredResult(
                result_type="input_required",
                input_requests={"sum": types.CreateMessageRequest(params=asked)},
                request_state="opaque",
            )
        (response,) = params.input_responses.values()
        text = f"{params.request_state}: {response}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def test_a_server_over_http_is_called_again_with_the_answer(tmp_path: Path) -> None:
    """C-1: by the protocol of 2026 nothing is open meanwhile."""
    async with (
        serving(Sampling()) as url,
        using(tmp_path, url, sampling_tokens=20) as found,
    ):
        first = await found.call("site__big")
        assert first.wanted is not None
        assert (first.wanted.message, first.wanted.tokens_max) == ("[it asks]\nSum it up.", 20)
        told = await answered(found, first, "site__big", {}, action="accept", text="A sum.")
        assert told.content.startswith("opaque: ")
        assert "A sum." in told.content
        told = await answered(found, first, "site__big", {}, action="decline", text="")
        assert "it did not go on" in told.content
