"""Lists and fields read the same for every noun: an empty one, times, and a noun alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.docs.commands import commands
from vigil.cli import output, tables, wall
from vigil.cli.registry import CommandLine, ListedGroup, ShownGroup
from vigil.cli.tables import Column, Result

COLUMNS = (Column("ID", "id"), Column("AT", "at", is_instant=True), Column("RUNS", "runs"))
ITEM = {"id": "a\x1b[2J1", "at": "2026-01-05T10:00:00.5+01:00", "runs": 0}


def test_a_list_is_a_table_or_json_or_says_that_it_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables.listing("jobs", [ITEM, {"id": "b"}], COLUMNS, empty="No jobs.").print(is_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["ID", "AT", "(UTC)", "RUNS"],
        ["a[2J1", "2026-01-05", "09:00:00", "0"],
        ["b", "-", "-"],
    ]
    tables.listing("jobs", [], COLUMNS, empty="No jobs.").print(is_json=False)
    assert capsys.readouterr() == ("", "No jobs.\n")
    tables.listing("jobs", [], COLUMNS, empty="No jobs.").print(is_json=True)
    assert capsys.readouterr() == ('{"jobs":[]}\n', "")


def test_fields_that_a_thing_has_none_of_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    tables.fields(COLUMNS, {"id": "b", "at": ITEM["at"]})
    assert capsys.readouterr().out == "ID    b\nAT    2026-01-05 09:00:00 UTC\n"


@pytest.mark.parametrize(
    ("given", "shown"),
    [([], "all, for a"), (["--json"], '"all"'), (["list", "--json"], '"all"'),
     (["show", "a1"], "a1"), (["--help"], "Usage")],
)  # fmt: skip
def test_a_noun_alone_lists(given: list[str], shown: str) -> None:
    app = CommandLine(cls=ListedGroup)

    @app.command("list")
    def list_() -> Result:
        return Result("all", lambda: output.data("all, for a person"))

    @app.command()
    def show(id_: str) -> None:
        output.data(id_)

    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0
    assert shown in done.output


def test_a_noun_that_is_one_thing_alone_shows_it() -> None:
    app = CommandLine(cls=ShownGroup)

    @app.command("raise")
    def raise_() -> None:
        output.data("more")

    @app.command()
    def show() -> None:
        output.data("what is left")

    assert CliRunner().invoke(app, []).output == "what is left\n"


# ---------------------------------------------------------------- a terminal


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A person's clock, and a terminal."""
    monkeypatch.setattr(output, "is_screen", lambda _: True)
    monkeypatch.setattr(wall, "_of_person", lambda: "Asia/Tokyo")
    wall.zone_name.cache_clear()
    yield
    wall.zone_name.cache_clear()


def test_at_a_terminal_times_are_on_the_persons_clocks(
    tokyo: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.fields(COLUMNS, {"at": ITEM["at"]})
    assert capsys.readouterr().out == "AT    2026-01-05 18:00:00 Asia/Tokyo\n"
    assert wall.zoned(ITEM["at"]) == "2026-01-05 18:00:00 Asia/Tokyo"
    tables.listing("jobs", [ITEM], COLUMNS, empty="").print(is_json=True)
    assert ITEM["at"] in capsys.readouterr().out, "programs are told it as it came"


COLUMN = st.tuples(st.integers(1, 60), st.integers(0, 3))


@given(st.lists(COLUMN, min_size=1, max_size=9), st.integers(20, 200))
def test_a_table_fits_or_is_as_narrow_as_it_can_be(
    columns: list[tuple[int, int]], room: int
) -> None:
    widths, ranks = zip(*columns, strict=True)
    shown = output.fitting(widths, ranks, room)
    assert shown == sorted(set(shown))
    assert set(range(min(2, len(columns)))) <= set(shown)
    needed = sum(widths[i] for i in shown) + output.GAP * (len(shown) - 1)
    assert needed <= room or len(shown) <= output.KEPT_MIN
    gone = set(range(len(columns))) - set(shown)
    if gone:
        last = min(gone, key=lambda i: (ranks[i], i))
        assert needed + output.GAP + widths[last] > room, "the last that went had to"
        assert all((ranks[i], i) < (ranks[last], last) for i in shown[output.KEPT_MIN :])


@pytest.mark.parametrize("columns", [80, 200])
def test_what_is_left_out_is_told(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "is_fancy", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    titles = ["ID", "NAME", "SESSION", "WHAT"]
    row = ["c1629d02", "brief", "ann:vigil:" + "t" * 40, "Look at the weather, then at the trains."]
    output.table(titles, [row], [0, 0, 1, 0])
    told = capsys.readouterr()
    assert max(map(len, told.out.splitlines())) <= columns
    is_narrow = columns == 80
    assert ("Left out for the width: SESSION." in told.err) == is_narrow
    assert ("ann:vigil:" in told.out) != is_narrow


def test_a_table_that_just_fits_isnt_wider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of rows of the timetable at 80 columns: each line was folded by the terminal."""
    monkeypatch.setattr(output, "is_fancy", lambda _: True)
    monkeypatch.setenv("COLUMNS", "80")
    row = ["c1629d02", "w " * 30, "on", "At 08:30 on Monday through Friday (UTC)"]
    titles = ["ID", "NAME", "STATE", "WHEN", "NEXT (UTC)"]
    output.table(titles, [[*row, "2026-11-28-08:30:00"]])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_help_shows_what_stands_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich takes `[mcp.NAME]` for markup, and would show nothing of it."""
    found = 0
    (_, whole), *_ = known = commands()
    for path, command in known:
        texts = [command.help, *(getattr(one, "help", None) for one in command.params)]
        wanted = {one for text in texts for one in re.findall(r"\[[^]\n]+\]", text or "")}
        if not wanted:
            continue
        with pytest.raises(SystemExit):
            whole.main([*path[1:], "--help"])
        words = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert [one for one in wanted if one not in words] == [], path
        found += len(wanted)
    assert found > 10
