"""Lists and fields read the same for every noun: an empty one, times, and a noun alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from vigil.cli import output, tables
from vigil.cli.registry import CommandLine, ListedGroup
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
