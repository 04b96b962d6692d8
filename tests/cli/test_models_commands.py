"""`vigil models add|use|key|find|remove`: who thinks lives in the home, not in one shell."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_api import chat_api
from tests.support.cli import Cli
from tests.support.messages_api import Reply, calls, says
from vigil.cli.setup import first_model
from vigil.local import model_servers
from vigil.settings import config
from vigil.settings.models.trial import FILE, TriedModel


def _calling(body: dict[str, Any]) -> Reply:
    return calls("say", {"word": "ok"}) if body.get("tools") else says("ok")


def _written(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "vigil.toml").read_text("utf-8"))


async def test_a_model_is_added_used_and_removed(tmp_path: Path) -> None:
    """It's asked before it thinks; what gives no answer changes nothing of who does."""
    cli = Cli(tmp_path)
    async with chat_api(_calling) as api:
        added = await _run(cli, "add", "local", "--url", api.url, "--model", "qwen3:8b", "--main")
        assert added.returncode == 0, added.stderr
        assert "local answers in" in added.stderr
        assert _written(tmp_path) == {
            "models": {"local": {"provider": "openai", "base_url": api.url, "model": "qwen3:8b"}},
            "model": {"main": "local"},
        }
        refused = await _run(cli, "remove", "local")
        assert (refused.returncode, "model.main names it" in refused.stderr) == (2, True)
    silent = await _run(cli, "add", "gone", "--url", "http://127.0.0.1:9/v1", "--main")
    assert silent.returncode == 1
    assert "gone gives no answer" in silent.stderr
    assert _written(tmp_path)["model"] == {"main": "local"}
    again = await _run(cli, "use", "gone")
    assert (again.returncode, "Nothing was changed" in again.stderr) == (1, True)
    unknown = await _run(cli, "use", "nosuch")
    assert (unknown.returncode, "'nosuch' is neither" in unknown.stderr) == (1, True)
    assert (await _run(cli, "remove", "gone")).returncode == 0
    assert list(_written(tmp_path)["models"]) == ["local"]


async def _run(cli: Cli, *words: str) -> Any:
    return await asyncio.to_thread(cli, "models", *words, code=None)


def test_a_key_is_kept_for_every_shell(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    said = cli("models", "key", "openai", "--file", "-", stdin=" sk-secret \n")
    assert "sk-secret" not in said.stdout + said.stderr
    assert "models add NAME --provider openai" in said.stderr
    file = tmp_path / "keys" / "openai"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config.load({}, home=tmp_path).openai_api_key == "sk-secret"
    other = config.load({"OPENAI_API_KEY": "sk-shell"}, home=tmp_path)
    assert other.openai_api_key == "sk-shell", "the environment counts more"
    assert "sk-secret" not in repr(other)
    cli("models", "key", "openai", "--remove")
    assert config.load({}, home=tmp_path).openai_api_key is None
    assert "no key of openai" in cli("models", "key", "openai", "--remove", code=3).stderr
    assert "no key has" in cli("models", "key", "openai", "--file", "-", code=2).stderr
    assert "--file" in cli("models", "key", "anthropic", code=2, stdin="").stderr


# ---------------------------------------------------------------- servers of this machine


@contextmanager
def server(answer: bytes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield http.server_address[1]
        finally:
            http.shutdown()
            thread.join()


def test_servers_of_models_are_found_and_others_are_not() -> None:
    listed = json.dumps({"object": "list", "data": [{"id": "qwen3:8b"}, {"id": 5}]}).encode()
    with server(listed) as models, server(b"<html>hello</html>") as page, server(b"[]") as other:
        ports = {"Ollama": models, "vLLM": page, "LM Studio": other, "llama.cpp": 9}
        (found,) = model_servers.found(ports)
    assert (found.name, found.models) == ("Ollama", ("qwen3:8b",))
    assert found.url == f"http://127.0.0.1:{models}/v1"


# ---------------------------------------------------------------- a start


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a person says to each question, the first last."""
    said: list[Any] = []
    monkeypatch.setattr(first_model.typer, "confirm", lambda *_, **__: said.pop())
    monkeypatch.setattr(first_model.typer, "prompt", lambda *_, **__: said.pop())
    monkeypatch.setattr(model_servers, "USUAL", {})
    monkeypatch.setattr(model_servers, "found", lambda: ())
    return said


def test_a_key_of_this_shell_is_kept_if_the_person_wants_it(
    tmp_path: Path, answers: list[Any]
) -> None:
    settings = config.load({"ANTHROPIC_API_KEY": "sk-ant-1"}, home=tmp_path)
    answers[:] = [False]
    first_model.ask_for_model(settings)
    assert not (tmp_path / "keys").exists()
    answers[:] = [True]
    first_model.ask_for_model(settings)
    assert config.load({}, home=tmp_path).anthropic_api_key == "sk-ant-1"
    first_model.ask_for_model(config.load({}, home=tmp_path))
    assert answers == [], "nothing is asked twice"


def test_who_has_nothing_is_asked_for_a_key(tmp_path: Path, answers: list[Any]) -> None:
    answers[:] = [""]
    first_model.ask_for_model(config.load({}, home=tmp_path))
    assert config.load({}, home=tmp_path).anthropic_api_key is None
    answers[:] = [" sk-ant-2 "]
    first_model.ask_for_model(config.load({}, home=tmp_path))
    assert config.load({}, home=tmp_path).anthropic_api_key == "sk-ant-2"


def test_a_server_of_this_machine_is_offered(
    tmp_path: Path, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = model_servers.ModelServer(name="Ollama", url="http://127.0.0.1:1/v1", models=("q",))
    monkeypatch.setattr(model_servers, "found", lambda: (there,))
    answers[:] = [True]
    first_model.ask_for_model(config.load({}, home=tmp_path))
    found = config.load({}, home=tmp_path).config
    assert (found.model.main, found.models["local"].base_url) == ("local", there.url)


def test_another_model_than_before_is_told(tmp_path: Path) -> None:
    settings = config.load({}, home=tmp_path)
    settings.run_file.parent.mkdir()
    assert first_model.remark_of(settings, "claude-sonnet-5-5") == ""
    assert "Until now claude-sonnet-5-5 thought" in first_model.remark_of(settings, "rehearsal")
    assert first_model.remark_of(settings, "rehearsal") == "", "once"


def test_a_model_that_answered_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config.load({}, home=tmp_path)
    asked: list[str] = []

    def tried(_: Any, name: str) -> list[TriedModel]:
        asked.append(name)
        return [TriedModel(name=name, error="401: no such key")]

    monkeypatch.setattr(first_model, "tried", tried)
    assert "gives no answer: 401" in first_model.answer_of(settings, "big")
    settings.run_file.parent.mkdir()
    file = settings.run_file.with_name(FILE)
    file.write_bytes(b'[{"name": "big", "latency_ms": 3.0}]')
    assert first_model.answer_of(settings, "big") == ""
    assert first_model.answer_of(settings, "rehearsal") == ""
    assert asked == ["big"]
    # One's own has a name here, and another one where it runs.
    settings.file.write_text('[models.tiny]\nmodel = "qwen3:8b"\n[model]\nmain = "tiny"\n')
    assert "no such key" in first_model.answer_of(config.load({}, home=tmp_path), "qwen3:8b")
    assert asked == ["big", "tiny"]
