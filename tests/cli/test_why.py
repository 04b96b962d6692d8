"""`vigil why`: what it prints, on a terminal, in a pipe and as JSON, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.cli import Cli, eventually, running_vigil
from vigil.cli import wall
from vigil.cli.commands.why import story

LONG: Final = "word " * 60


def step(at: str | None, text: str) -> dict[str, Any]:
    return {"at": at, "seq": 1, "stream": "SESSIONS", "what": "x", "text": text}


ANSWER: Final[dict[str, Any]] = {
    "id": "e", "kind": "message", "session_key": "ann:vigil:t1", "verdict": "said",
    "summary": "It was said.", "cut": "3 steps in the middle are left out",
    "steps": [
        step("2031-03-03T09:00:00Z", "first"),
        step("2031-03-03T09:00:00.5Z", "in the same second"),
        step(None, "whenever"),
        step("2031-03-04T07:00:00Z", LONG),
        step("2031-03-04T07:00:01Z", "\x1b[2Jevil\x07\u202e\nsecond line"),
    ],
}  # fmt: skip


def test_a_story_is_wrapped_and_tells_each_time_once() -> None:
    """P-2: days as headings, no line beyond the width."""
    lines = list(story(ANSWER, width=60))
    assert lines[:4] == [
        "2031-03-03 (UTC)", "  09:00:00  first", "            in the same second",
        "            whenever",
    ]  # fmt: skip
    assert lines[4:6] == ["", "2031-03-04 (UTC)"]
    assert max(map(len, lines)) <= 60
    assert "".join(lines).count("word") == 60
    assert lines[-3:] == ["(3 steps in the middle are left out)", "", "It was said."]


def test_at_a_terminal_what_a_step_tells_is_on_the_clocks_of_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P-2: one clock in a story; only what somebody wrote stands as they wrote it."""
    monkeypatch.setattr(wall, "zone_name", lambda: "Asia/Tokyo")
    told = "It planned “tea”, for 2031-03-03 10:00:00 UTC; it will say “2031-03-03 10:00 UTC”."
    answer = ANSWER | {
        "steps": [step("2031-03-03T09:00:00Z", told)],
        "summary": "It is planned for 2031-03-03 10:00:00 UTC.",
    }
    shown = " ".join(" ".join(story(answer, width=95)).split())
    assert shown.startswith("2031-03-03 (Asia/Tokyo) 18:00:00 It planned “tea”")
    assert "for 2031-03-03 19:00:00 Asia/Tokyo; it will say “2031-03-03 10:00 UTC”." in shown
    assert shown.endswith("It is planned for 2031-03-03 19:00:00 Asia/Tokyo.")


def test_what_was_said_can_not_forge_the_screen() -> None:
    """X-6: control characters and direction overrides are dropped, colours are ours."""
    text = "\n".join(story(ANSWER, width=60))
    assert "[2Jevil second line" in text
    assert not any(c in text for c in "\x1b\x07\u202e")
    coloured = list(story(ANSWER, width=60, is_fancy=True))
    assert coloured[-1] == "\x1b[1;32mIt was said.\x1b[0m"
    assert "\x1b[2J" not in "\n".join(coloured)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("why") / "home") as running:
        running("send", "check back in 1 second", "--thread", "w1")
        eventually(lambda: said(running) == 2)
        yield running


def said(cli: Cli) -> int:
    records = cli("tail", "session", "me:vigil:w1", "--no-follow", "--json").stdout
    return records.count('"kind":"out.said"')


def test_a_story_of_what_runs(cli: Cli) -> None:
    """D-3, P-2: for people and for programs."""
    found = cli.json("why", "followup-1")
    assert (found["kind"], found["verdict"]) == ("timer", "said")
    shown = cli("why", "followup-1", "--session", "me:vigil:w1").stdout
    assert "You wrote: “check back in 1 second”" in shown
    assert shown.splitlines()[-1] == found["summary"]
    assert "\x1b" not in shown
    event = next(s["id"] for s in found["steps"] if s["what"] == "message.in")
    assert cli.json("why", event)["kind"] == "event"


def test_what_is_not_known_and_what_is_not_usable(cli: Cli) -> None:
    """P-2: exit codes 3 and 2; nothing on stdout."""
    for args, code in (
        (("why", "nothing"), 3),
        (("why", "followup-1", "--session", "me:vigil:other"), 3),
        (("why", "followup-1", "--session", "nonsense"), 2),
        (("why",), 2),
    ):
        done = cli(*args, code=code)
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    assert "nothing is known by that id" in cli("why", "nothing", code=3).stderr


def test_as_much_of_an_id_as_lists_show_is_enough(cli: Cli) -> None:
    """P-2: of goals and the like, and of what others find by the beginning, too."""
    cli("goals", "add", "Drink tea")
    shown = cli("goals", "list").stdout.splitlines()[1].split()[0]
    found = cli.json("why", shown)
    assert (found["kind"], len(found["id"])) == ("goal", 32)
    assert "You set the goal “Drink tea”" in cli("why", shown).stdout
    assert cli.json("why", "followup")["kind"] == "timer"
    for code in ("4711", "4712"):
        cli("send", f"remember that my locker code is {code}")
    several = cli("why", "result-", code=2).stderr
    assert "'result-' is the beginning of several: result-" in several


def test_colours_on_a_terminal_only(cli: Cli) -> None:
    """P-2"""
    ours, theirs = os.openpty()
    try:
        assert cli.start_at(theirs, "why", "followup-1").wait(30) == 0
        assert b"\x1b[1;32m" in os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)
