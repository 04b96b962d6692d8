"""`vigil setup`, as a person at a terminal goes through it."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.support.chat_api import chat_api
from tests.support.obedient import obey
from vigil.cli.exits import NotReady
from vigil.cli.setup import wizard
from vigil.local import model_servers

BEFORE = '# Mine.\n[person]\ntimezone = "UTC"  # for now\n'
TOKEN = "123456:AAE-letters"


class Person:
    """Answers questions by a word of theirs; whatever else is asked, they press Enter."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.refused: list[str] = []

    def prompt(
        self,
        text: str,
        default: str | None = None,
        value_proc: Callable[[str], str] = lambda text: text,
        **_: Any,
    ) -> str:
        self.asked.append(text)
        said = next((one for word, one in self.answers.items() if word in text), [])
        while True:
            given = said.pop(0) if said else default
            assert given is not None, f"nothing is offered for: {text}"
            try:
                return value_proc(given)
            except typer.BadParameter as error:
                self.refused.append(error.message)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(wizard, "sandbox", lambda _: None)  # tried by `vigil doctor`'s own tests
    monkeypatch.setattr(model_servers, "USUAL", {})
    (tmp_path / "vigil.toml").write_text(BEFORE, "utf-8")
    return tmp_path


def goes_through(monkeypatch: pytest.MonkeyPatch, **answers: list[str]) -> Person:
    person = Person({word.replace("_", " "): said for word, said in answers.items()})
    monkeypatch.setattr(typer, "prompt", person.prompt)
    wizard.setup()
    return person


def test_nobody_at_a_terminal_is_told_what_else_does_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(NotReady, match="`vigil channels add` do the same"):
        wizard.setup()


def test_enter_leaves_all_as_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = goes_through(monkeypatch)
    assert (home / "vigil.toml").read_text("utf-8") == BEFORE
    assert len(person.asked) == 5
    assert not (home / "keys").exists()


def test_what_is_said_is_written_and_what_can_not_be_is_asked_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = goes_through(
        monkeypatch,
        zone=["Mars/Base", "Asia/Tokyo"],
        Language=["deutsch!", "de"],
        Hours=["at night", "22:00-07:00"],
        Who_thinks=["nobody", "anthropic"],
        Another_way=["pigeon", "telegram", "telegram"],
        bot=["my_bot", "@my_bot"],
        Its_token=[TOKEN, TOKEN],
    )
    assert len(person.refused) == 3
    text = (home / "vigil.toml").read_text("utf-8")
    assert text.startswith("# Mine.\n[person]\n")
    assert "# for now" in text
    found = tomllib.loads(text)
    assert found["person"] == {
        "timezone": "Asia/Tokyo", "language": "de", "quiet_hours": "22:00-07:00",
    }  # fmt: skip
    assert found["channels"]["telegram"]["bot"] == "@my_bot"
    assert TOKEN not in text
    told = " ".join(capsys.readouterr().err.split())
    for one in ("no nobody", "Not written: key: is missing", "no pigeon", "must be the bot's name"):
        assert one in told, told
    assert "vigil channels pair telegram" in told

    # Once more: what was said stands there, and nothing is asked of it twice.
    again = goes_through(monkeypatch, zone=["none", "Asia/Tokyo"])
    assert "there is: telegram" in again.asked[-1]
    assert (home / "vigil.toml").read_text("utf-8") == text


async def test_a_server_of_this_machine_thinks_once_it_answered(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with chat_api(obey) as thinker:
        port = thinker.port
        monkeypatch.setattr(model_servers, "USUAL", {"Ollama": port})
        monkeypatch.setattr(model_servers.found, "__defaults__", ({"Ollama": port},))
        await asyncio.to_thread(goes_through, monkeypatch, Who_thinks=["ollama"])
    found = tomllib.loads((home / "vigil.toml").read_text("utf-8"))
    assert found["model"]["main"] == "local"
    assert "local answers in" in capsys.readouterr().err
