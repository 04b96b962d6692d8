"""The worked examples of tools.md and approvals.md, as they stand there."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

from vigil.settings import config
from vigil.timetable.instants.cron import check_cron

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)


def block(page: str, word: str) -> str:
    """Return the indented block of a page that begins with a word."""
    blocks = map(textwrap.dedent, BLOCK.findall((DOCS / page).read_text("utf-8")))
    (found,) = [one.strip() + "\n" for one in blocks if one.strip().startswith(word)]
    return found


def test_the_nightly_check_fetches_what_is_configured_and_granted(tmp_path: Path) -> None:
    """tests/acceptance/test_evening.py has such a night."""
    (tmp_path / "weather.headers").write_text("Authorization: Bearer TOKEN\n")
    (tmp_path / "vigil.toml").write_text(
        block("tools.md", "[sites.weather]") + block("tools.md", "[search]")
    )
    (url,) = config.load({}, home=tmp_path).config.sites["weather"].urls
    row, grant = map(shlex.split, block("tools.md", "vigil cron add").splitlines())
    assert url in row[4]
    check_cron(row[row.index("--cron") + 1], "UTC")
    assert url.startswith(grant[grant.index("--url") + 1])
    assert grant[grant.index("--row") + 1] == row[3]


def test_the_command_that_is_always_allowed_can_be_configured(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text(block("approvals.md", "[[grants]]"))
    (grant,) = config.load({}, home=tmp_path).config.grants
    assert (grant.name, grant.tool) == ("disk", "shell")
