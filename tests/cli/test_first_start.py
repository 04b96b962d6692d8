"""What the first start takes from the machine, and asks (LOOPS L-11)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vigil.cli.admin.up import first_person
from vigil.local import system
from vigil.settings import config
from vigil.settings.sections import Person


def etc(folder: Path, *, timezone: str = "", link: str = "") -> Path:
    if timezone:
        (folder / "timezone").write_text(f"{timezone}\n")
    if link:
        (folder / "localtime").symlink_to(link)
    return folder


def test_the_zone_is_the_first_that_there_is(tmp_path: Path) -> None:
    linked = etc(tmp_path, link="/usr/share/zoneinfo/America/New_York")
    assert system.zone({}, linked) == "America/New_York"
    both = etc(tmp_path, timezone="Asia/Tokyo")
    assert system.zone({}, both) == "Asia/Tokyo"
    assert system.zone({"TZ": "Europe/Rome"}, both) == "Europe/Rome"
    assert system.zone({"TZ": "/etc/passwd"}, both) == "Asia/Tokyo"


def test_without_any_it_is_utc(tmp_path: Path) -> None:
    assert system.zone({}, tmp_path) == "UTC"
    assert system.zone({}, etc(tmp_path, timezone="Mars/Base", link="/nowhere")) == "UTC"


@pytest.mark.parametrize(
    ("environ", "tag"),
    [
        ({}, ""),
        ({"LANG": "C.UTF-8"}, ""),
        ({"LANG": "POSIX"}, ""),
        ({"LANG": "fr"}, "fr"),
        ({"LANG": "sr_RS@latin"}, "sr-RS"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, "de-DE"),
        ({"LANG": '"\nx'}, ""),
    ],
)
def test_the_language_is_that_of_messages(environ: dict[str, str], tag: str) -> None:
    assert system.language(environ) == tag


def test_the_first_file_holds_both_and_a_later_start_changes_neither(tmp_path: Path) -> None:
    settings = config.load({}, home=tmp_path)
    found = Person(timezone="Europe/Berlin", language="de-AT")
    assert config.ensure_home(settings, lambda: found)
    assert config.load({}, home=tmp_path).config.person == found
    assert not config.ensure_home(settings)
    written = tomllib.loads(settings.file.read_text())["person"]
    assert written == {"timezone": "Europe/Berlin", "language": "de-AT"}


def asked(answers: str) -> tuple[Person, str]:
    """Return what follows from a person's answers, and what they are shown."""
    found: list[Person] = []
    app = typer.Typer()
    app.command()(lambda: found.append(first_person(is_asked=True)))
    done = CliRunner().invoke(app, input=answers, env={"TZ": "Asia/Tokyo", "LANG": "ja_JP.UTF-8"})
    assert done.exit_code == 0, done.output
    return found[0], done.output


def test_on_a_terminal_it_is_asked_with_what_the_machine_says() -> None:
    assert asked("\n\n")[0] == Person(timezone="Asia/Tokyo", language="ja-JP")
    assert asked("Europe/Rome\nit\n")[0] == Person(timezone="Europe/Rome", language="it")
    person, shown = asked("Mars\nEurope/Rome\nItalian!\nit\n")
    assert person == Person(timezone="Europe/Rome", language="it")
    assert "no IANA time zone" in shown
    assert "no language tag" in shown


def test_without_a_terminal_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "C")
    assert first_person(is_asked=False) == Person(timezone="Asia/Tokyo")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("tag", ["German", "de_DE", "d", "de-", "de\nx"])
def test_a_language_is_a_tag(tmp_path: Path, tag: str) -> None:
    with pytest.raises(config.ConfigError, match="language"):
        config.load({"VIGIL_PERSON__LANGUAGE": tag}, home=tmp_path)
