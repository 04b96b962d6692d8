"""The worked examples of tools.md and approvals.md, as they stand there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from services.gateway.work.skills import parse
from vigil.settings import config

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)


def block(page: str, word: str) -> str:
    """Return the indented block of a page that begins with a word."""
    blocks = map(textwrap.dedent, BLOCK.findall((DOCS / page).read_text("utf-8")))
    (found,) = [one.strip() + "\n" for one in blocks if one.strip().startswith(word)]
    return found


def test_the_nightly_check_is_a_skill_that_fetches_what_is_configured(tmp_path: Path) -> None:
    skill = parse("night-check", block("tools.md", "---"))
    assert skill.tools == ("http_get",)
    (tmp_path / "weather.headers").write_text("Authorization: Bearer TOKEN\n")
    (tmp_path / "vigil.toml").write_text(
        block("tools.md", "[sites.weather]") + block("tools.md", "[search]")
    )
    (url,) = config.load({}, home=tmp_path).config.sites["weather"].urls
    assert f'http_get {{"url": "{url}"}}' == skill.text.strip()


def test_the_command_that_is_always_allowed_can_be_configured(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text(block("approvals.md", "[[grants]]"))
    (grant,) = config.load({}, home=tmp_path).config.grants
    assert (grant.name, grant.tool) == ("disk", "shell")
