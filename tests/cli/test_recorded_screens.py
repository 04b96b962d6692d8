"""The terminal as a person sees it, in tmux at 80 and 200 columns, beside recorded screens."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import tmux
from tests.support.cli import Cli, running_vigil
from tests.support.messages_api import Reply, calls, messages_api, says
from tests.support.messages_replies import said
from tests.support.tmux import PROMPT, Pane, compare, pane

pytestmark = pytest.mark.skipif(not tmux.is_there(), reason="there is no tmux here")
TARIFFS = """## What it costs

| tariff | for whom | a month |
|--------|----------|--------:|
| small | one person who mostly asks, and seldom has anything done by itself | 9.50 |
| large | everybody | 19.00 |

1. ask `me`
2. *wait*

```py
def price(people):
    return 9.5 * people
```

That is all, told in a line that is longer than eighty columns so that it has to be wrapped."""
COLD = 80
"""The width at which chat is what its terminal's keys go to itself, as a person's is."""
SLOW = "This takes a while. " * 200
ROWS = (
    ("Water the plants at the kitchen window before the sun gets there", "30 8 * * 1-5"),
    ("News", "0 7 * * *"),
)


def behave(body: dict[str, Any]) -> Reply:
    if "say" in {tool["name"] for tool in body.get("tools", ())}:
        return calls("say", {"word": "ok"})  # as `vigil up` tries it
    last = str(said(body)[-1]["content"])
    if "pasted" in last:
        return says("A paragraph came, as one message.")
    if "tariffs" in last:
        return says(TARIFFS)
    return says(SLOW, delay_s=0.05) if "slowly" in last else says("Two lines came, as one message.")


async def test_the_terminal_at_both_widths(tmp_path: Path) -> None:
    """Chat draws Markdown within the width, takes several lines and pastes as one message, has a
    history, stops by Ctrl-C and leaves by a second one; tables, why and doctor fit."""
    async with messages_api(behave) as model:
        home = tmp_path / "home"
        home.mkdir()
        (home / "vigil.toml").write_text(
            f'[model]\nmain = "far"\n[models.far]\nbase_url = "{model.url}"\n'
        )
        await asyncio.to_thread(_look, home, tmp_path)


def _look(home: Path, folder: Path) -> None:
    with running_vigil(home, ANTHROPIC_API_KEY="sk-ant-test") as cli:
        for name, cron in ROWS:
            cli("cron", "add", name, "Tell me", "--cron", cron)
        cli("goals", "add", "Keep every plant at the kitchen window alive over the winter")
        for columns in (80, 200):
            with pane(cli, folder, columns) as one:
                _chats(one)
                for name in ("cron list", "goals list"):
                    compare(name.replace(" ", "-"), columns, one.does(f"vigil {name}"))
                _explains(cli, one)


def _chats(one: Pane) -> None:
    vigil = "cold-vigil" if one.columns == COLD else "vigil"
    one.types(f"clear; {vigil} chat --thread c{one.columns}")
    one.presses("Enter")
    one.sees("you>")
    one.types("what are the tariffs?")
    one.presses("Enter")
    shown = one.sees("to be wrapped", but_not="## What")
    compare("chat-markdown", one.columns, shown.partition("you> what")[2])
    assert "\x1b[" in one.screen(has_colours=True)
    one.types("first line\\")
    one.presses("Enter")
    one.types("second line")
    one.presses("Enter")
    one.sees("Two lines came")
    one.pastes("a pasted\nparagraph")
    one.sees("a pasted")
    one.presses("Enter")
    one.types("slowly, please")  # said before that is answered, it's what is stopped all the same
    one.presses("Enter")
    one.sees("This takes a while.")
    one.presses("C-c")
    one.sees("stopped")
    one.presses("Up")
    one.sees("you> slowly, please\n")
    one.presses("C-c")
    one.sees(PROMPT)


_LATER: Final = re.compile(r"^  \d\d:\d\d:\d\d  (?=The agent)", re.MULTILINE)


def _explains(cli: Cli, one: Pane) -> None:
    told = cli.json("send", f"--thread=why{one.columns}", "what are the tariffs?")
    shown = one.does(f"vigil why {told['event_id']}")
    # A second may have passed since, and then it's told again.
    compare("why", one.columns, _LATER.sub(" " * len("  00:00:00  "), shown))
    shown = one.does("vigil doctor")
    assert [part for part in ("ok    services", "(pid ", "of me, admin") if part not in shown] == []
