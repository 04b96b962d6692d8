"""Ten errands in the console, done by hand in a real Chromium: pressed where a person would press,
counted, and timed.

A click is a press on a link, a button, a box or a fold. Getting into a field is told apart: at a
desk Tab or a key does it, on a phone it is a tap. Each errand begins at Today, or says where.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.chromium import Tab
from tests.support.console import link_of
from tests.support.console_stage import Stage
from tests.support.remembering import save
from vigil.subjects import SessionKey

if TYPE_CHECKING:
    from services.cortex.model import ModelRequest

WIDTHS: Final = {"desk": 1280, "phone": 390}
CLICKS_MAX: Final = 2
TABLE: Final = "prices\n\n|tariff|a month|\n|---|---:|\n|small|9.50|\n"
_POINT: Final = """(async () => {
    let found, x, y, was = [];
    do {  // nobody presses what moves: a page that was opened at a message scrolls there
        await new Promise(requestAnimationFrame);
        found = [...document.querySelectorAll(%s)].find(one => one.checkVisibility());
        if (found === undefined) return null;
        found.scrollIntoView({block: "center", behavior: "instant"});
        const box = [...found.getClientRects()].find(one => one.width);  // a link may have two
        [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        was = [...was, `${x} ${y}`].slice(-3);
    } while (was.length < 3 || was.some(one => one !== was[0]));
    const top = document.elementFromPoint(x, y);
    return found.contains(top) || top?.contains(found) ? [x, y] : `covered by ${top?.outerHTML}`;
})()"""
_PASTE: Final = """(async () => {
    const canvas = new OffscreenCanvas(40, 40);
    canvas.getContext("2d").fillRect(0, 0, 20, 40);
    const data = new DataTransfer();
    const made = await canvas.convertToBlob({type: "image/png"});
    data.items.add(new File([made], "pasted.png", {type: "image/png"}));
    document.querySelector("#say textarea").dispatchEvent(
        new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
})()"""
_WATCH: Final = """(() => {
    window.seenAt = 0;
    new MutationObserver(() => {
        const shown = document.getElementById("tokens");
        const isThere = shown !== null && !shown.hidden && shown.textContent.startsWith("First");
        if (!window.seenAt && isThere) requestAnimationFrame(() => {
            window.seenAt = performance.timeOrigin + performance.now();
        });
    }).observe(document.body, {
        subtree: true, childList: true, characterData: true, attributes: true,
    });
})()"""


class Hand:
    """Somebody at a page: what they press is counted."""

    def __init__(self, tab: Tab, stage: Stage, width: str) -> None:
        self.tab = tab
        self.stage = stage
        self.width = width
        self.clicks = 0
        self.fields = 0

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.stage.world.gate.port}/console{path}"

    async def sign_in(self) -> None:
        """Open the link as `vigil console` does."""
        link = await link_of(self.stage.world.gate, self.stage.ann.token)
        await self.tab.go(f"http://127.0.0.1:{self.stage.world.gate.port}{link}")
        await self.tab.press("form button")

    async def click(self, selector: str, *, leads_on: bool = True) -> None:
        """Press the first that can be seen. Raises: AssertionError, none can, or it's covered."""
        if leads_on:
            await self.tab.run("window.isOld = true")
        await self._press(selector)
        self.clicks += 1
        if leads_on:
            await self.tab.arrived()

    async def into(self, selector: str) -> None:
        """Get into a field, unless it has the focus, and choose what it holds."""
        named = json.dumps(selector)
        if not await self.tab.run(f"document.activeElement?.matches({named}) ?? false"):
            await self._press(selector)
            self.fields += 1
        await self.tab.run("document.activeElement.select?.()")

    async def _press(self, selector: str) -> None:
        point = await self.tab.run(_POINT % json.dumps(selector))
        assert isinstance(point, list), (selector, point, await self.tab.text())
        place = {"x": point[0], "y": point[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            await self.tab.call("Input.dispatchMouseEvent", type=kind, **place)

    async def write(self, text: str) -> None:
        await self.tab.call("Input.insertText", text=text)

    async def enter(self) -> None:
        """Press Enter in a field that leads on."""
        await self.tab.run("window.isOld = true")
        await self.tab.enter()
        await self.tab.arrived()

    async def sees(self, text: str) -> None:
        """Wait until the page says so. Raises: AssertionError, with what it says instead."""
        try:
            await self.tab.until(f"document.body.innerText.includes({json.dumps(text)})")
        except TimeoutError:
            raise AssertionError(f"{text!r} isn't in {await self.tab.text()!r}") from None

    async def finds(self, words: str) -> None:
        """Search from the top of any page."""
        await self.into("header .anything input")
        await self.write(words)
        await self.enter()


async def overnight(hand: Hand) -> None:
    await hand.sees("What happened")
    await hand.sees("It freezes tonight")


async def approve(hand: Hand) -> None:
    await hand.sees(f"df -h /{hand.width}")
    there = (await hand.stage.api.get("/api/approvals")).json()["approvals"]
    command = {"command": f"df -h /{hand.width}"}
    (id_,) = [one["id"] for one in there if one["input"] == command]
    await hand.click(f"#n-{id_} button[value=accept]")
    await hand.click("#sure button")
    found = (await hand.stage.api.get("/api/approvals?state=accepted")).json()["approvals"]
    assert f"df -h /{hand.width}" in [one["input"].get("command") for one in found]


async def why(hand: Hand) -> None:
    await hand.click("#happened ~ .journal a[href*=why]")
    assert await hand.tab.run("document.querySelectorAll('main ol > li').length") > 2


async def cost(hand: Hand) -> None:
    await hand.sees("Seven days")
    await hand.click("a[href$='cost?days=30&by_cause=1']")
    await hand.sees("My basil is called Bruno")


async def stop(hand: Hand) -> None:
    await hand.click("header button[value=on]")
    await hand.sees("Your agents say and begin nothing unasked")


async def go_on(hand: Hand) -> None:
    await hand.click(".undo button")


async def weekdays(hand: Hand) -> None:
    """Every weekday at 8:30, without a word of cron."""
    await hand.click("nav a[href$='/timetable']")
    await hand.into("#new textarea")
    await hand.write(f"Tell me what is due today, {hand.width}")
    await hand.into("#new input[type=time]")
    await hand.tab.run("document.activeElement.value = '08:30'")
    await hand.click("#new button.go")
    await hand.sees("At 08:30 on Monday through Friday")


async def forget(hand: Hand) -> None:
    await hand.finds(f"{hand.width} sundial")
    await hand.click(f"button[aria-label*='{hand.width} has a sundial']")
    await hand.click("#sure button")
    await hand.finds(f"{hand.width} sundial")
    assert f"{hand.width} has a sundial" not in await hand.tab.text()


async def correct(hand: Hand) -> None:
    await hand.finds("soil")
    await hand.click("#found a[href*=preferences]")
    await hand.into("main article input[name=value]:focus, main article input[name=value]")
    await hand.write(f"with bark, says the {hand.width}")
    await hand.click("main article button[value=say]")
    await hand.sees("with bark, says")
    found = (await hand.stage.api.get("/api/preferences")).json()["preferences"]
    assert f"with bark, says the {hand.width}" in [one["value"] for one in found]


async def talk(hand: Hand) -> None:
    """Say something from Today; what comes is drawn by its Markdown."""
    await hand.click("main a.talk")
    await hand.into("#say textarea")
    await hand.write(TABLE)
    await hand.tab.enter()
    await hand.tab.until("document.querySelector('article.assistant table') !== null")


async def edit(hand: Hand) -> None:
    """From the conversation: say the last message otherwise."""
    await hand.click("article.user a[href*=edit]")
    await hand.tab.until("document.activeElement.matches('textarea[name=instead]')")
    await hand.into("textarea[name=instead]")
    await hand.write(f"otherwise, {hand.width}")
    await hand.click("button[name=message].go")
    await hand.sees(f"re: otherwise, {hand.width}")


async def retry(hand: Hand) -> None:
    await hand.click("article.user button[form=again]")
    await hand.sees("older version")


async def picture(hand: Hand) -> None:
    await hand.into("#say textarea")
    await hand.tab.run(_PASTE)
    await hand.tab.until("document.querySelectorAll('#chosen canvas').length === 1")
    await hand.write(f"look, {hand.width}")
    await hand.tab.enter()
    await hand.sees(f"re: look, {hand.width}")
    await hand.tab.until("[...document.images].some(one => one.naturalWidth === 40)")


async def error(hand: Hand) -> None:
    """Something failed: what, and why."""
    await hand.sees("400 No")
    await hand.click(".journal li:has(.bad) a[href*='why?id=delivery']")
    await hand.sees("400 No")


async def _afresh(hand: Hand) -> None:
    """What an errand uses up is there again, for each width."""
    await hand.stage.asks(f"df -h /{hand.width}")
    await save(hand.stage.api, f"The garden of the {hand.width} has a sundial", source="notes")


class Errand(NamedTuple):
    """What somebody comes to do."""

    name: str
    do: Callable[[Hand], Awaitable[None]]
    begins: str = ""
    """Where, below the console's path."""
    after: Callable[[Hand], Awaitable[None]] | None = None
    """Sets things back, uncounted."""
    is_done_elsewhere: bool = False
    """Whether another test of the console does it, uncounted, so that `make test` needn't here."""


class Done(NamedTuple):
    """How an errand went."""

    errand: str
    width: str
    clicks: int
    fields: int
    seconds: float
    failed: str = ""


TALK: Final = f"/conversations/{SessionKey('ann', 'vigil', 'errands')}"
ERRANDS: Final = (
    Errand("what happened overnight", overnight),
    Errand("approve", approve),
    Errand("why", why, is_done_elsewhere=True),
    Errand("what it cost", cost, is_done_elsewhere=True),
    Errand("stop everything", stop, after=go_on, is_done_elsewhere=True),
    Errand("weekdays 8:30", weekdays),
    Errand("find and forget", forget),
    Errand("correct a preference", correct),
    Errand("chat", talk),
    Errand("chat: picture by paste", picture, TALK, is_done_elsewhere=True),
    Errand("chat: edit", edit, TALK, is_done_elsewhere=True),
    Errand("chat: retry", retry, TALK, is_done_elsewhere=True),
    Errand("find an error", error),
)


async def run_all(
    tab: Tab, stage: Stage, width: str, wanted: Iterable[Errand] = ERRANDS
) -> list[Done]:
    """Do them one after another; what fails says so and doesn't keep the next from being done."""
    await tab.look(width=WIDTHS[width])
    hand = Hand(tab, stage, width)
    await _afresh(hand)
    return [await done(hand, one) for one in wanted]


async def done(hand: Hand, errand: Errand) -> Done:
    """Do one, and return how it went."""
    hand.clicks, hand.fields, failed = 0, 0, ""
    begun_at = time.perf_counter()
    try:
        await hand.tab.go(hand.url(errand.begins))
        await errand.do(hand)
    except (AssertionError, TimeoutError) as problem:
        failed = str(problem)[:2000] or type(problem).__name__
    seconds = time.perf_counter() - begun_at
    went = Done(errand.name, hand.width, hand.clicks, hand.fields, seconds, failed)
    if errand.after is not None and not failed:
        await errand.after(hand)
    return went


async def first_words_ms(tab: Tab, stage: Stage, tries: int) -> list[float]:
    """Return how long after the model's first words they are seen on the page, each time."""
    agent, found = stage.world.agent, []
    answer: Any = agent.answer

    async def streamed(request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        nonlocal told_at
        told_at = time.time() * 1000
        on_text("First words")
        await tab.until("window.seenAt > 0")
        return await answer(request, on_text)

    hand = Hand(tab, stage, "desk")
    await tab.go(hand.url(TALK))
    agent.answer = streamed  # type: ignore[method-assign]
    try:
        for number in range(tries):
            told_at = 0.0
            await tab.run(_WATCH)
            await hand.into("#say textarea")
            await hand.write(f"say something, {number}")
            await tab.enter()
            await hand.sees(f"re: say something, {number}")
            found.append(await tab.run("window.seenAt") - told_at)
            await stage.world.at_rest()
    finally:
        agent.answer = answer  # type: ignore[method-assign]
    return found
