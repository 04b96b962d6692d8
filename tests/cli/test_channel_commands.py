"""Channels added and removed by commands: in the file, with its comments; secrets apart."""

from __future__ import annotations

import json
import tomllib
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.gateway.http.problem import Problem
from services.gateway.written_settings import written
from vigil.channels.notices.ntfy import Ntfy
from vigil.cli.app import app, commands
from vigil.edits import channel_sections, toml_sections
from vigil.errors import VigilError
from vigil.settings import config

BEFORE = '# Mine.\n[person]\ntimezone = "Europe/Vienna"  # here\n'
TOKEN = "123456:AAE-letters"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
    (tmp_path / "vigil.toml").write_text(BEFORE, "utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    commands(app)(["channels", *words, "--json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_channels_of_one_kind_have_names_and_secrets_of_their_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, secret = home / "vigil.toml", home / "given"
    secret.write_text(f"{TOKEN}\n")
    given = ("--set", "bot=@my_bot", "--file", f"token={secret}")
    assert run(capsys, "add", "telegram", *given)["name"] == "telegram"
    assert run(capsys, "add", "telegram", *given)["name"] == "telegram-2"
    named = run(capsys, "add", "telegram", "--name", "telegram-2-token", *given)
    assert named["name"] == "telegram-2-token"
    text = file.read_text("utf-8")
    assert text.startswith(BEFORE)
    assert TOKEN not in text
    run(capsys, "remove", "telegram-2")
    kept = sorted(one.name for one in (home / "keys").iterdir())
    assert kept == ["channel-telegram-2-token-token", "channel-telegram-token"]
    channels = tomllib.loads(file.read_text("utf-8"))["channels"]
    assert {name for name in channels if name != "push"} == {"telegram", "telegram-2-token"}


def test_the_list_says_what_is_wrong_with_a_way_out(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stood there as one that "only writes", and delivery took in no change because of it."""
    with (home / "vigil.toml").open("a") as file:
        file.write('[channels.phone]\nkind = "ntfy"\nuser = "ann"\ntopic = "t"\n')
        file.write('url = "https://ntfy.example/a"\n[channels.bell]\nkind = "push"\n')
    found = {one["name"]: one["problem"] for one in run(capsys, "list")["channels"]}
    assert found["phone"] == "url: must be of the server alone: the topic has a field"
    assert found["bell"] == ""


def test_a_way_out_is_somebodys(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", "ntfy", "--set", "topic=hard-to-guess", "--user", "ann")
    found = config.load({}, home=home).config.channels["ntfy"]
    assert isinstance(found, Ntfy)
    assert (found.user, found.topic_file) == ("ann", "keys/channel-ntfy-topic")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["webhook"], "kind: must be one of apprise, desktop, discord, matrix, ntfy"),
        (["telegram", "--set", "bot=@my_bot"], "token: is missing"),
        (["telegram", "--set", "bot"], "must be FIELD=…"),
        (["telegram", "--set", "bot=@my_bot", "--set", "token=a b"], "token: has another form"),
        (["telegram", "--set", "bot=my_bot", "--set", f"token={TOKEN}"], "must be the bot's name"),
        (["telegram", "--set", "bots=x"], "bots: isn't asked for: bot, token is"),
        (["telegram", "--file", "token=nowhere"], "nowhere can't be read"),
        (["ntfy", "--name", "socket", "--set", "topic=a", "--user", "ann"], "a channel socket"),
        (["ntfy", "--set", "topic=a\nb", "--user", "ann"], "topic: must be one line"),
        (
            ["matrix", "--set", "user_id=@a:b\x7f", "--set", "homeserver=https://m"],
            "user_id: must be",
        ),
    ],
)
def test_what_can_not_work_leaves_nothing(
    home: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(VigilError) as refused:
        run(capsys, "add", *words)
    assert reason in str(refused.value)
    assert "channels" not in tomllib.loads((home / "vigil.toml").read_text("utf-8"))
    assert not list((home / "keys").glob("channel-*"))


def test_who_comes_second_leaves_the_secret_of_the_first(home: Path) -> None:
    """A command and an admin in the console, or two, of one name: both looked before."""
    settings = config.load({}, home=home)
    for topic in ("first", "second"):
        planned = channel_sections.plan(settings.config, "ntfy", "n", {"topic": topic}, "ann")
        with nullcontext() if topic == "first" else pytest.raises(VigilError, match="already"):
            channel_sections.add(settings, planned)
    assert (home / "keys/channel-n-topic").read_text() == "first\n"


def test_each_kind_asks_for_fields_that_it_has() -> None:
    for kind, section in channel_sections.offered().items():
        for one in section.asked or ():
            field = f"{one.name}_file" if one.is_secret else one.name
            assert field in section.__struct_fields__, (kind, one.name)


async def test_who_comes_second_over_http_is_told_so(home: Path) -> None:
    """Of replicas, each looks at the file for itself."""
    file = home / "vigil.toml"
    add = partial(toml_sections.add, file, "mcp", "a", {"url": "https://a.example"})
    remove = partial(toml_sections.remove, file, "mcp", "a")
    for change, status in ((add, 0), (add, 409), (remove, 0), (remove, 404)):
        with pytest.raises(Problem) if status else nullcontext() as refused:
            await written(config.load({}, home=home), change)
        assert refused is None or refused.value.status == status
