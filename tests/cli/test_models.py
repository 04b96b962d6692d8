"""`vigil models`, and `vigil doctor` on them: each is asked for a token, on the wire it speaks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from services.cortex.trial import CALL_TOKENS_MAX
from tests.support.chat_api import Style, chat_api
from tests.support.cli import Cli
from tests.support.messages_api import Reply, calls, fails, messages_api, says
from vigil.doctor.models import check_of
from vigil.settings.models.trial import FILE, TriedModel

PRICES = (
    "[{since = 2026-01-01, input = 3, output = 15}, {since = 2999-01-01, input = 9, output = 9}]"
)


def _calling(body: dict[str, Any]) -> Reply:
    return calls("say", {"word": "ok"}) if body.get("tools") else says("ok")


def _without_tools(body: dict[str, Any]) -> Reply:
    blocks = [block["type"] for message in body["messages"] for block in message["content"]]
    if body.get("tools") or "image" in blocks:
        return fails(400, "invalid_request_error", error_message="does not support that")
    return says("ok")


async def test_each_configured_model_is_asked(tmp_path: Path) -> None:
    """C-9: what it costs and can't do; exit code 1 while one gives no answer."""
    cli = Cli(tmp_path, ANTHROPIC_API_KEY="sk-ant-secret")
    async with (
        messages_api(_calling) as good,
        messages_api(lambda _: says("I call `say` with ok.")) as small,
        chat_api(_without_tools) as chat,
    ):
        chat.style = Style(refuses=("response_format",), has_usage=False)
        section = f"""
            [model]
            main = "big"
            cheap = "small"
            fallback = "small"
            [models.big]
            base_url = "{good.url}"
            prices = {PRICES}
            [models.small]
            model = "qwen3:8b"
            base_url = "{small.url}"
            context_tokens = 8000
            [models.chat]
            provider = "openai"
            base_url = "{chat.url}"
            takes = ["image"]
        """
        (tmp_path / "vigil.toml").write_text(section)
        found = {one["name"]: one for one in (await _json(cli, 0, "models"))["models"]}
        assert list(found) == ["big", "small", "chat"]
        kept = msgspec.json.decode((tmp_path / "run" / FILE).read_bytes())
        assert [one["name"] for one in kept if "tools" in one["lacks"]] == ["small", "chat"]
        assert found["big"]["latency_ms"] > 0
        assert found["big"].items() >= {
            "used_by": ["model.main"], "provider": "anthropic", "model": "big", "lacks": [],
            "server": good.url.removeprefix("http://"), "error": "",
        }.items()  # fmt: skip
        assert (found["big"]["price"]["input"], found["big"]["price"]["output"]) == (3, 15)
        assert found["small"]["used_by"] == ["model.cheap", "model.fallback"]
        assert (found["small"]["context_tokens"], found["small"]["price"]) == (8000, None)
        assert found["small"]["lacks"] == ["tools", "a cap in USD: it has no price"]
        assert found["chat"]["provider"] == "openai"
        assert found["chat"]["lacks"] == [
            "tools", "answers by a schema", "images", "counts of tokens",
            "a cap in USD: it has no price",
        ]  # fmt: skip
        assert found["chat"]["server"] in chat.url
        assert sorted(one.body["max_tokens"] for one in good.requests) == [1, 1, CALL_TOKENS_MAX]
        check = await _check(cli, 0)
        assert check["state"] == "warn"
        assert "ms, without tools)" in check["found"]
        assert "small calls no tools: asked for a reminder" in check["found"]
        assert "chat calls" not in check["found"], "nothing uses it"

        good.behave = lambda _: fails(401, "authentication_error")
        with (tmp_path / "vigil.toml").open("a") as file:
            file.write('[models.lost]\napi_key_file = "no/such"\n')
        shown = await asyncio.to_thread(cli, "models", code=1)
        assert "3 in, 15 out" in shown.stdout
        assert "big: the model's server does not accept the API key" in shown.stderr
        assert "lost: models.lost.api_key_file: " in shown.stderr
        assert "small: calls no tools" in shown.stderr
        assert "sk-ant-secret" not in f"{found}{shown.stdout}{shown.stderr}"
        assert "correct the setting or the key" in (await _check(cli, 1))["advice"]

        good.behave = lambda _: fails(529, "overloaded_error")
        text = (tmp_path / "vigil.toml").read_text()
        (tmp_path / "vigil.toml").write_text(text.partition("[models.lost]")[0])
        check = await _check(cli, 1)
        assert "big: the model's provider is overloaded (529)" in check["found"]
        assert check["advice"].startswith("see whether its server runs"), "no key is wrong"


def test_a_model_without_an_answer_fails_the_check() -> None:
    good, bad = TriedModel(name="big", latency_ms=3.0), TriedModel(name="small", error="no key")
    found = check_of((good, bad))
    assert (found.state, found.found) == ("fail", "small: no key")


async def test_the_stand_in_is_free(tmp_path: Path) -> None:
    (only,) = (await _json(Cli(tmp_path), 0, "models"))["models"]
    assert (only["name"], only["price"], only["lacks"]) == (
        "rehearsal", {"input": 0, "output": 0}, [],
    )  # fmt: skip


async def _json(cli: Cli, code: int, *words: str) -> Any:
    return await asyncio.to_thread(cli.json, *words, code=code)


async def _check(cli: Cli, code: int) -> dict[str, str]:
    checks = (await _json(cli, code, "doctor"))["checks"]
    return next(check for check in checks if check["name"] == "model")
