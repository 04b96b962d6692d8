"""The errands of `errands.py` as they were done in the console before it was rebuilt for them.

`python -m bench errands --before COMMIT` lays this module, that one and `chromium.py` into a tree
of that commit and runs it there, so all that serves the pages is of then. It is written for
e46e3e79, the last one that starts and shows no Markdown; in others something may stand elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support import chromium, console_stage, errands
from tests.support.agent import ask
from tests.support.channels import channel_of
from tests.support.console_stage import Stage
from tests.support.errands import Done, Errand, Hand
from tests.support.gateway import until
from tests.support.receiver import running_receiver, status
from tests.support.remembering import save
from tests.support.world import running_world
from vigil.clock import SystemClock
from vigil.subjects import SessionKey


async def overnight(hand: Hand) -> None:
    """What was said, done by itself, and not done as planned; not what ran or was found."""
    await hand.sees("What was said to you unasked")
    await hand.sees("It freezes tonight")


async def approve(hand: Hand) -> None:
    """On a page of its own; Today said that something waits, not what."""
    command = f"df -h /{hand.width}"
    opened = (await hand.stage.api.get("/api/approvals")).json()["approvals"]
    (id_,) = [one["id"] for one in opened if one["input"] == {"command": command}]
    await hand.click(f"#needs + ul a[href$='{id_}']")
    await hand.sees(command)
    await hand.click("button[value=accept]")
    found = (await hand.stage.api.get("/api/approvals?state=accepted")).json()["approvals"]
    assert command in [one["input"].get("command") for one in found]


async def why(hand: Hand) -> None:
    await hand.click("main a[href*=why]")
    assert await hand.tab.run("document.querySelectorAll('main ol > li').length") > 2


async def cost(hand: Hand) -> None:
    await hand.sees("Seven days")
    await hand.click("a[href$='by_cause=1']")
    await hand.sees("plants")


async def stop(hand: Hand) -> None:
    await hand.click("header button[value=on]")
    await hand.sees("Your agents say and begin nothing unasked")


async def go_on(hand: Hand) -> None:
    await hand.click("header button[value=off]")


async def weekdays(hand: Hand) -> None:
    """By cron, which one had to know, and with a name."""
    await hand.click("nav a[href$='/timetable']")
    await hand.click("details:has([name=cron]) summary", leads_on=False)
    for field, text in (("name", f"Due {hand.width}"), ("prompt", "Tell what is due")):
        await hand.into(f"details [name={field}]")
        await hand.write(text)
    await hand.into("details [name=cron]")
    await hand.write("30 8 * * 1-5")
    await hand.click("details button.go")
    await hand.sees(f"Due {hand.width}")


async def forget(hand: Hand) -> None:
    """On a page of its own; it was gone at the first press."""
    await hand.click("nav a[href$='/memories']")
    await hand.into("main input[name=q]")
    await hand.write(f"{hand.width} sundial")
    await hand.enter()
    await hand.sees(f"{hand.width} has a sundial")
    await hand.click("main article a[href*='/memories/']")
    await hand.sees(f"{hand.width} has a sundial")
    await hand.click("main button.stop")

    async def is_gone() -> bool:
        memories = (await hand.stage.api.get("/api/memories")).json()["memories"]
        return f"{hand.width} has a sundial" not in json.dumps(memories)

    await until(is_gone, "it is forgotten")


async def talk(hand: Hand) -> None:
    """A table was shown as it was written."""
    await hand.click("nav a[href$='/conversations']")
    await hand.click("main a[href*='/conversations/ann:vigil:plants']")
    await hand.into("#say textarea")
    await hand.write(errands.TABLE)
    await hand.click("#say button.go")
    await hand.sees("|small|9.50|")
    assert await hand.tab.run("document.querySelector('main table')") is None


async def edit(hand: Hand) -> None:
    await hand.click("article.user a[href*=edit]")
    await hand.into("textarea[name=instead]")
    await hand.write(f"otherwise, {hand.width}")
    await hand.click("button[name=message].go")
    await hand.sees(f"re: otherwise, {hand.width}")


async def retry(hand: Hand) -> None:
    await hand.click("article.user a[href*=edit]")
    await hand.click("button[name=message]:not(.go)")
    await hand.sees("older version")


async def error(hand: Hand) -> None:
    """On the page of deliveries; Today didn't say that anything failed."""
    await hand.click("nav a[href$='/deliveries']")
    await hand.sees("400 No")
    await hand.click("article:has(.text) a[href*=why]")
    await hand.sees("400 No")


TALK: Final = "/conversations/ann:vigil:plants"
ERRANDS: Final = (
    Errand("what happened overnight", overnight),
    Errand("approve", approve),
    Errand("why", why),
    Errand("what it cost", cost),
    Errand("stop everything", stop, after=go_on),
    Errand("weekdays 8:30", weekdays),
    Errand("find and forget", forget),
    Errand("chat", talk),
    Errand("chat: edit", edit, TALK),
    Errand("chat: retry", retry, TALK),
    Errand("find an error", error),
)
NONE: Final = {
    "correct a preference": "no page",
    "chat: picture by paste": "a file could be chosen, nothing pasted",
}
"""What wasn't possible, and why."""


async def _asks(stage: Stage, command: str, thread: str) -> None:
    mails = stage.world.talk(str(SessionKey("ann", "vigil", thread)))
    await mails.ended(await mails.outside(ask(("shell", {"command": command}))))
    await stage.world.at_rest()

    async def is_asked() -> bool:
        opened = (await stage.api.get("/api/approvals")).json()["approvals"]
        return any(one["input"] == {"command": command} for one in opened)

    await until(is_asked, "it asks for leave")


@contextlib.asynccontextmanager
async def _staged(home: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with running_receiver(status(400, "No")) as receiver:
        options = {"channels": {"phone": channel_of(receiver)}, "autonomy": {"cooldown_ms": 0}}
        async with running_world(home, patch, SystemClock(), has_hands=True, **options) as world:
            yield await console_stage.set_up(world)


async def main(tell: Callable[[Done], None], home: Path) -> None:
    """Do each errand at both widths, and tell of it; of what couldn't be done, too."""
    do: Callable[[Hand, Errand], Awaitable[Done]] = errands.done
    with pytest.MonkeyPatch.context() as patch:
        async with (
            _staged(home, patch) as stage,
            chromium.opened(home / "profile") as tab,
        ):
            await tab.look()
            await Hand(tab, stage, "desk").sign_in()
            for width in errands.WIDTHS:
                await tab.look(width=errands.WIDTHS[width])
                hand = Hand(tab, stage, width)
                await _asks(stage, f"df -h /{width}", f"mails-{width}")
                await save(stage.api, f"The garden of the {width} has a sundial", source="notes")
                for one in ERRANDS:
                    await stage.world.at_rest()  # pages of then changed while one pressed
                    tell(await do(hand, one))
                for name, reason in NONE.items():
                    tell(Done(name, width, 0, 0, 0.0, f"not possible: {reason}"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(lambda one: print(json.dumps(one._asdict()), flush=True), Path(folder)))
