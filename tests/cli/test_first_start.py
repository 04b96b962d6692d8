"""What the first start takes from the machine, and asks (LOOPS L-11)."""

from __future__ import annotations

import io
import os
import sys
import tomllib
from math import inf
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vigil.cli.setup import up as starting
from vigil.cli.setup.first_answers import ask_for_cap, first_person
from vigil.local import system
from vigil.local.home import ensure_home
from vigil.local.token import token_file
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
    assert ensure_home(settings, lambda: found)
    assert config.load({}, home=tmp_path).config.person == found
    assert not ensure_home(settings)
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


PRICES = """
[model]
main = "own"

[models.own]
prices = [{since = 2026-01-01, input = 3, output = 15, cache_write = 3.75}]
"""


def cap_after(home: Path, text: str, answers: str) -> tuple[str, str]:
    """Return the file of a home after its first start, and what was asked."""
    (home / "vigil.toml").write_text(text)
    app = typer.Typer()
    app.command()(lambda: ask_for_cap(config.load({}, home=home)))
    done = CliRunner().invoke(app, input=answers)
    assert done.exit_code == 0, done.output
    return (home / "vigil.toml").read_text(), done.output


@pytest.mark.parametrize(
    ("more", "answers", "daily_usd"),
    [
        ("", "\n", 69),  # 7.6 Mio. at 3.75 and 0.4 Mio. at 15, of which one person has half
        ("", "7.5\n", 7.5),
        ("", "much\n-1\nnan\n20\n", 20),
        ("[budget]  # ours\nshare_per_user = 1.0\n", "\n", 35),
    ],
)
def test_a_limit_in_money_is_proposed_where_there_are_prices(
    tmp_path: Path, more: str, answers: str, daily_usd: float
) -> None:
    text, shown = cap_after(tmp_path, PRICES + more, answers)
    assert "Daily limit in USD" in shown
    found = config.load({}, home=tmp_path).config
    assert found.budget.daily_usd == daily_usd
    assert found.prices_of("own"), "all else stays"
    assert "# Of all agents, a day." in text
    assert all(line in text for line in (PRICES + more).splitlines())
    assert cap_after(tmp_path, text, "")[1] == "", "it isn't asked again"


@pytest.mark.parametrize(
    "text",
    [
        "",
        PRICES.replace("prices", "# prices"),
        PRICES.replace("2026-01-01", "2999-01-01"),
        PRICES.replace('"own"\n', '"own"\ncheap = "unpriced"\n', 1),
        PRICES + "[budget]\ndaily_usd = 3\n",
        PRICES + "[budget]\ndaily_usd_per_user = 3\n",
        PRICES.replace('main = "own"', 'main = "rehearsal"'),
    ],
)
def test_none_is_proposed_that_would_stop_a_model_or_change_a_limit(
    tmp_path: Path, text: str
) -> None:
    """With a limit in money a model without a price isn't asked."""
    assert cap_after(tmp_path, text, "") == (text, "")


def test_who_wants_none_has_none_and_what_is_written_otherwise_stays(tmp_path: Path) -> None:
    assert cap_after(tmp_path, PRICES, "0\n")[0] == PRICES
    inline = "budget = {share_per_user = 0.5}\n" + PRICES
    text, shown = cap_after(tmp_path, inline, "\n")
    assert text == inline
    assert "by hand. It is: daily_usd = 69" in shown


def test_it_is_asked_on_a_terminal_and_at_the_first_start_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
    started: list[float] = []

    def starts(settings: config.Settings, *_: object) -> None:
        started.append(settings.config.budget.daily_usd)

    monkeypatch.setattr(starting, "_serve_all", starts)
    master, slave = os.openpty()
    with os.fdopen(slave) as terminal, os.fdopen(master, "wb", buffering=0) as keys:
        for stdin, has_token in ((io.StringIO(), False), (terminal, True), (terminal, False)):
            (tmp_path / "vigil.toml").write_text(PRICES)
            token_file(tmp_path).unlink(missing_ok=True)
            if has_token:
                token_file(tmp_path).write_text("pat_x\n")
            monkeypatch.setattr(sys, "stdin", stdin)
            if len(started) == 2:
                keys.write(b"\n")
            starting.up()
    assert started == [inf, inf, 69]
