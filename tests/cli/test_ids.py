"""Ids on the command line: shown so that they can be copied, taken by their beginning."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest

from tests.support.cli import Cli, running_vigil
from vigil.cli import exits, output, prefixes
from vigil.errors import InvalidInput

ID = "0123456789abcdef0123456789abcdef"
KEY = "a-rather-long-user-name:vigil:a-rather-long-thread-name"
TEXT = "a sentence of many words that may well be folded over several lines of a narrow terminal"


class Narrow(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_an_id_is_never_folded(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """P-2: at 80 columns and less, too."""
    terminal = Narrow()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    output.table(("ID", "SESSION", "WHAT"), [(ID, KEY, TEXT), ("b" * 32, KEY, "-")])
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert shown.count(ID) == 1
    assert shown.count(KEY) == 2
    is_wide = columns == 200
    assert (" ".join(TEXT.split()[:2]) in shown) == is_wide, "else it's left out, and that is told"
    assert shown.splitlines()[0].split() == ["ID", "SESSION", *["WHAT"] * is_wide]


def test_a_table_without_rows_has_its_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Narrow()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    output.table(("ID", "WHAT"), [])
    assert "WHAT" in terminal.getvalue()


def test_beginnings() -> None:
    ids = ["abc1", "abd2", "b3", "b34"]
    assert prefixes.whole("job", "ABC", ids, length=4) == "abc1"
    assert prefixes.whole("job", "zzzz", ids, length=4) == "zzzz", "the gateway says what it is"
    assert prefixes.whole("timer", "b3", ids, length=None) == "b3"
    with pytest.raises(InvalidInput, match="abc1, abd2"):
        prefixes.whole("job", "ab", ids, length=4)
    with pytest.raises(exits.NotReady, match="no job begins with 'e'"):
        prefixes.whole("job", "e", ids, length=4)
    with pytest.raises(InvalidInput, match="hex digits"):
        prefixes.whole("job", "x", ids, length=4)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("ids") / "home") as running:
        yield running


def test_commands_take_the_beginning_of_an_id(cli: Cli) -> None:
    """P-2: jobs, memories and timers, as approvals do."""
    job = cli("jobs", "run", "--goal", "say hello").stdout
    listed = cli.json("jobs", "list")["jobs"]
    assert cli.json("jobs", "show", listed[0]["id"][:12])["id"] == listed[0]["id"], job
    cli("jobs", "cancel", "zz", code=2)

    saved = [cli.json("memory", "save", text)["id"] for text in ("tea", "coffee")]
    assert cli.json("memory", "show", saved[0][:12])["memory"]["id"] == saved[0]
    cli("memory", "graph", saved[0][:12])
    missing = "0000" if not saved[0].startswith("0000") else "ffff"
    done = cli("memory", "show", missing, code=3)
    assert f"no memory begins with '{missing}'" in done.stderr
    cli("memory", "forget", saved[1][:12])
    assert [m["id"] for m in cli.json("memory", "list")["memories"]] == [saved[0]]

    cli("send", "remind me in 20 minutes to stretch", "--thread", "t1")
    (timer,) = cli.json("timers", "me:vigil:t1")["timers"]
    cli("timers", "me:vigil:t1", "--cancel", timer["timer_id"][:10])
    cli("timers", "me:vigil:t1", "--cancel", "zz", code=3)
    assert json.loads(cli("timers", "--json").stdout)["timers"] == []
