"""The console in a real Chromium, driven as a person would: talk, decide, look, live, by keys."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import pytest_asyncio
from msgspec.structs import replace

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from services.gateway.console.shapes.bodies import CLIP
from tests.cortex.driver import answer as made
from tests.support import approvals, chromium, console_stage, errands, hostile_markdown
from tests.support.agent import ask, follow_up
from tests.support.chromium import Tab
from tests.support.console import Reader, covering, link_of, pages, signal, signed_in
from tests.support.console_stage import KEY, Stage
from tests.support.examples import repeats
from tests.support.gateway import until
from tests.support.mailing import CHANNEL
from tests.support.page_times import PageTimes
from vigil.channels import pairs
from vigil.contracts import Cause, Loop, OpenCall, State, Waiting
from vigil.subjects import SessionKey

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(chromium.binary() is None, reason="there is no Chromium here"),
]
ANN: Final = SessionKey("ann", "vigil", "t1")
HOSTILE: Final = "</textarea><script>window.isHurt = 1</script><img src=x onerror=window.isHurt=1>"
TITLES: Final = (
    HOSTILE,
    "\u202egnp.exe \u2066a\u2069 \u200b\u3164\u061c",
    "W" * 110,
    "{{ 7 * 7 }} ${7*7} javascript:alert(1) <b onmouseover=window.isHurt=1>",
)
"""What a conversation is called by somebody who means no good."""
DRAWN: Final = """(() => {
    const [fraction, wide, long] = [...document.querySelectorAll(".prose:has(mfrac)")].at(-1)
        .querySelectorAll("math");
    const [above, below] = [...fraction.querySelector("mfrac").children]
        .map(one => one.getBoundingClientRect());
    const places = [...wide.querySelectorAll("mtd")].map(one => one.getBoundingClientRect());
    const box = long.parentElement;
    return [above.bottom <= below.top, places[0].bottom <= places[2].top,
            getComputedStyle(box).overflowX === "auto" && box.tabIndex === 0];
})()"""
"""Whether a fraction and a matrix are drawn as such, and what is long can be moved."""
BROKEN_WORDS: Final = """(() => {
    const broken = [], range = document.createRange();
    for (const cell of document.querySelectorAll(".scroll td")) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const word of texts.currentNode.data.matchAll(/[\\w/]{1,20}/g)) {
                range.setStart(texts.currentNode, word.index);
                range.setEnd(texts.currentNode, word.index + word[0].length);
                if (range.getClientRects().length > 1) broken.push(word[0]);
            }
        }
    }
    return broken;
})()"""
"""Words of tables that are on two lines, of up to 20 characters."""
WELL_MEANT: Final = """## What it costs

| tariff | a month |
|--------|--------:|
| small  | 9.50    |
| large  | 19.00   |

See [the list](https://a.example/prices), *or*, with $\\frac{n^2}{2}$ each:

$$
\\begin{pmatrix}1 & 2\\\\3 & 4\\end{pmatrix} = \\sum_{i=1}^{n} \\boxed{a_i}
$$

and \\(w_1 + w_2 + w_3 + w_4 + w_5 + w_6 + w_7 + w_8 + w_9 + w_{10} + w_{11} + w_{12}\\):

1. ask `me`
2. wait

```py
class Price(float):  # in euros
    def __str__(self):
        return f"{self:.2f}" + 3 * "€"
```

```diff
-old
+new
```

> That is all.

|a|b|c|d|e|f|g|h|
|-|-|-|-|-|-|-|-|
|wwwwwwww|wwwwwwww|wwwwwwww|wwwwwwww|wwwwwwww|wwwwwwww|wwwwwwww|wwwwwwww|

```py
if x:
    pass
```
"""
TRIED: Final = SessionKey("ann", "vigil", "tried")
_ROOT: Final = Path(__file__).parents[2]
AXE: Final = _ROOT / ".venv" / "mcp" / "node_modules" / "axe-core" / "axe.min.js"
"""Of the packages in tests/mcp_servers; without npm it isn't there."""
PICTURES: Final = os.environ.get("VIGIL_PICTURES", "")
"""A folder: pictures of all pages are kept there, light and dark, of a desk and a phone."""
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
BARE: Final = ("/enter?code=x", f"/tasks/{'f' * 32}")
"""Pages that have nothing around them: of somebody who isn't signed in, and of what isn't there."""
_OF_ADMINS: Final = (
    "health",
    "settings",
    "tools",
    "autonomy",
    "servers",
    "agents/vigil",
    "welcome",
)
OF_ADMINS: Final = ("", *(f"/{name}" for name in _OF_ADMINS))
"""Pages on which an admin sees more."""
UNFOLD: Final = "document.querySelectorAll('details').forEach(one => one.open = true)"
FOLD: Final = "document.querySelectorAll('details').forEach(one => one.open = false)"
NEEDS_SCRIPT: Final = """[
    ...[...document.querySelectorAll("button")]
        .filter(one => !one.form && getComputedStyle(one).display !== "none"),
    ...[...document.querySelectorAll("form")]
        .filter(one => !["get", "post", "dialog"].includes(one.method)),
    ...[...document.querySelectorAll("a")].filter(one => !one.hasAttribute("href")),
    ...[...document.querySelectorAll("main [hidden]")]
        .filter(one => !one.closest("#tokens, #halted, #unsent, #left-out, [data-push]")),
    ...(document.querySelector("h1") === null ? [document.body] : []),
].map(one => one.outerHTML.slice(0, 200))"""
"""What of a page does nothing, or isn't seen, without a script; but the button for notifications,
which browsers give to scripts alone."""
KEPT: Final = """(async () => {
    const names = await caches.keys();
    const held = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return held.flat().map((one) => new URL(one.url).pathname);
})()"""
FOREIGN_WORKER: Final = """(async () => {
    try { await navigator.serviceWorker.register("/console/files/" + "a".repeat(64)); }
    catch (error) { return error.name; }
})()"""
"""Somebody's file as a worker: a text is no place of one."""
UNKEPT: Final = """(async () => {
    const { src } = document.querySelector("script[src]"), names = await caches.keys();
    const forget = async (name) => (await caches.open(name)).delete(src);
    await Promise.all(names.map(forget));
    const { status } = await fetch(src);
    return [status, (await Promise.all(names.map(forget))).filter(Boolean).length];
})()"""
"""What comes of a script that isn't kept, and in how many places it is from then on."""
AT_END: Final = "innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
GROWS: Final = """(() => {
    scrollBy({ top: -9, behavior: "instant" });
    const more = document.createElement("p");
    more.style.height = "500px";
    document.getElementById("talk").append(more);
})()"""
"""What comes before the browser tells of a scroll that was before it."""
FIELD: Final = "document.querySelector('#say textarea').value"
SLOW: Final = """((sent) => { delete window.lose; window.fetch = async (...asked) => {
    if (!(asked[1]?.body instanceof FormData)) return sent(...asked);
    window.fetch = sent;
    const answer = await sent(...asked);
    return new Promise((resolve, reject) => {
        Object.assign(window, { arrive: () => resolve(answer), lose: () => reject(new Error()) });
    });
}; })(window.fetch)"""
"""The answer to what is sent next comes with `arrive()`, or is lost with `lose()`."""
STREAMS: Final = """(() => {
    window.isAway = true;
    window.streams = [];
    Object.defineProperty(document, "hidden", { get: () => window.isAway });
    window.look = (isAway) => {
        window.isAway = isAway;
        document.dispatchEvent(new Event("visibilitychange"));
    };
    const sent = fetch;
    window.fetch = (url, ...asked) => {
        if (String(url).includes("/live")) streams.push(asked[0]);
        return sent(url, ...asked);
    };
    window.EventSource = class extends EventSource {
        constructor(...asked) { super(...asked); streams.push(this); }
    };
})()"""
"""A page that is opened behind others; what it follows, and a way to come to look at it."""
REFUSED: Final = """(() => {
    Object.assign(window, { refuses: 503, refused: 0 });
    const sent = fetch, later = setTimeout;
    window.fetch = async (url, ...asked) => {
        if (!refuses || !asked[0]?.headers?.["HX-Request"]) return sent(url, ...asked);
        window.refused += 1;
        return new Response("", { status: refuses });
    };
    window.setTimeout = (what, ms, ...more) => later(what, ms === 5000 ? 100 : ms, ...more);
})()"""
"""What scripts ask for is refused with `refuses`, until that is 0; they soon ask again."""
SWAPS: Final = "window.swaps = 0; document.addEventListener('htmx:after:swap', () => swaps++)"
TWICE: Final = """((button) => {
    let count = 0;
    addEventListener("submit", (event) => {
        count += event.defaultPrevented ? 0 : 1;
        event.preventDefault();
    });
    for (const _ of [1, 2]) button.form.requestSubmit(button);
    return count;
})"""
"""How many of two presses of a button a browser sends."""
SLOW_FINDS: Final = """(() => {
    const sent = fetch;
    Object.assign(window, { isSlow: false, finds: [] });
    window.fetch = async (url, ...asked) => {
        const { pathname, searchParams } = new URL(url, location);
        if (pathname.endsWith("/find")) finds.push(searchParams.get("q"));
        while (isSlow) await new Promise((resolve) => setTimeout(resolve, 20));
        return sent(url, ...asked);
    };
})()"""
"""What the palette asks for, whose answers don't come while it `isSlow`."""
NAMES: Final = """[...new Set([...document.querySelectorAll("article")].map(one =>
    document.getElementById(one.getAttribute("aria-labelledby")).innerText.split(" ")[0]))]"""
BEHIND: Final = """(() => {
    document.documentElement.style.scrollBehavior = "auto";
    scrollTo(0, 0);
    const top = document.getElementById("say").getBoundingClientRect().top;
    return [...document.querySelectorAll("#talk button")].filter(one => {
        one.focus();
        return one.getBoundingClientRect().bottom > top;
    }).length;
})()"""
"""How much of what the keyboard leads to is behind the field, as it leads there."""
COMPOSED: Final = """document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true}))"""
CARRY: Final = """(async () => {
    const made = async (name, type, side) => {
        const canvas = new OffscreenCanvas(side, side);
        canvas.getContext("2d").fillRect(0, 0, side / 2, side);
        return new File([await canvas.convertToBlob({type})], name, {type});
    };
    const held = async (...files) => {
        const data = new DataTransfer();
        for (const one of files) data.items.add(one);
        return data;
    };
    const field = document.querySelector("#say textarea");
    const pasted = await held(await made("pasted.png", "image/png", 40));
    field.dispatchEvent(new ClipboardEvent("paste", {clipboardData: pasted, bubbles: true}));
    const dropped = await held(await made("dropped.png", "image/png", 90),
                               await made("unwanted.png", "image/png", 60));
    field.dispatchEvent(new DragEvent("drop", {dataTransfer: dropped, bubbles: true}));
})()"""
"""Pastes a picture, and drops two."""
MORE: Final = """(names) => {
    const data = new DataTransfer();
    for (const name of names) {
        const type = name.endsWith("pdf") ? "application/pdf" : "";
        const size = name.startsWith("large") ? 3584 * 1024 + 1 : 5;
        const begin = {pdf: "%PDF-", zip: "PK\\0"}[name.slice(-3)] ?? "# Tag";
        data.items.add(new File([begin.padEnd(size)], name, {type}));
    }
    document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
}"""
SLOW_LOOK: Final = """((read) => {
    const seen = new Promise((resolve) => { window.see = resolve; });
    Blob.prototype.arrayBuffer = async function () { await seen; return read.call(this); };
})(Blob.prototype.arrayBuffer)"""
"""A file isn't read until `see()`."""
LATE: Final = "((later) => { window.setTimeout = (what) => later(what, 60_000); })(setTimeout)"
"""What a page does "in a moment" comes late, as in a browser that has much to do."""
PRESSABLE: Final = """[...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
    .filter(one => one.checkVisibility({visibilityProperty: true}) && !one.disabled)"""
"""What somebody may press or write into, that is there to be seen."""
NAMED: Final = """(one.getAttribute("aria-label") || one.innerText || one.placeholder || one.title
    || [...(one.labels ?? [])].map(label => label.innerText).join(" ")).trim()"""
SEEN: Final = """(getComputedStyle(one).outlineStyle !== "none" || one.matches("[type=file]"))
    && one.getBoundingClientRect().width > 0"""
NOTED: Final = f"""(() => {{
    for (const name of ["changed", "htmx:before:swap"])
        addEventListener(name, (event) => {{
            event.stopImmediatePropagation();
            event.preventDefault();
        }}, true);
    const places = {PRESSABLE};
    window.seen = [];
    addEventListener("focusin", ({{target: one}}) => seen.push([places.indexOf(one), {SEEN}]));
    return places.map((one) => {NAMED});
}})()"""
"""Notes what gets the focus, and whether that is seen, on a page that looks no more by itself."""
COLOURS: Final = {"type": "rule", "values": ["color-contrast"]}
_NAMELESS: Final = re.compile(r"[0-9a-f]{32}|ann:vigil:plants")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: Any) -> AsyncIterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        async with console_stage.staged(tmp_path_factory.mktemp("home"), patch) as stage:
            yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(stage: Stage, tmp_path_factory: Any) -> AsyncIterator[Tab]:
    """Ann is signed in: by the link, as `vigil console` opens it."""
    async with chromium.opened(tmp_path_factory.mktemp("profile")) as tab:
        await tab.look()
        link = await link_of(stage.world.gate, stage.ann.token)
        await tab.go(f"http://127.0.0.1:{stage.world.gate.port}{link}")
        await tab.press("form button")
        assert await tab.run("location.pathname") == "/console"
        yield tab


def url(stage: Stage, path: str = "") -> str:
    return f"http://127.0.0.1:{stage.world.gate.port}/console{path}"


async def fill(tab: Tab, selector: str, text: str) -> None:
    """Put a text in the place of what a field holds."""
    await tab.run(f"document.querySelector({json.dumps(selector)}).value = ''")
    await tab.type(selector, text)


async def shows(tab: Tab, text: str) -> None:
    """Wait until the page says so. Raises: AssertionError, with what it says instead."""
    try:
        await tab.until(f"document.body.innerText.includes({json.dumps(text)})")
    except TimeoutError:
        raise AssertionError(f"{text!r} isn't in {await tab.text()!r}") from None


@pytest.mark.repeated
async def test_each_page_fits_and_is_for_everybody(stage: Stage, tab: Tab) -> None:
    """On a phone at night, and the colours on a desk in daylight: nothing is cut, axe finds
    nothing, nothing is against the policy. In `make test` a few pages, on which every kind of
    element is that any has."""
    wrong: list[tuple[str, ...]] = []
    ann = await signed_in(stage.world.gate, "ann")
    around = "document"
    for path in await first_of((*pages(), *stage.below()), ann):
        await tab.look(is_dark=True, width=390)
        await tab.go(url(stage, path))
        await tab.run(UNFOLD)
        # A window of a phone grows with what is too wide for it.
        if await tab.run("document.documentElement.scrollWidth > 390"):
            wrong.append((path, "is wider than the screen"))
        wrong += [(path, "phone", *one) for one in await violations(tab, RULES)]
        await tab.look()
        wrong += [(path, "desk", *one) for one in await violations(tab, COLOURS, around)]
        around = "'main'"  # what is around that is the same on all
        await tab.run(FOLD)
        await keep_pictures(tab, path)
        await tab.look(script=False)
        await tab.go(url(stage, path))
        wrong += [(path, "needs a script", one) for one in await tab.run(NEEDS_SCRIPT)]
    await tab.look()
    assert not wrong
    assert tab.complaints == []


async def first_of(paths: Sequence[str], reader: Reader, less: Reader | None = None) -> list[str]:
    """Return all, or in `make test` those that have among them every kind of element; but for what
    is there for somebody who sees `less`, too."""
    known = [] if less is None else [await less.page(path) for path in paths]
    few = covering({path: await reader.page(path) for path in paths}, known)
    rest = (path for path in paths if path not in few)
    return [*few, *rest][: len(paths) if PICTURES else repeats(len(paths), fast=len(few))]


async def test_each_instant_is_on_the_clocks_of_who_reads_it(stage: Stage) -> None:
    """In Tokyo and in UTC: whatever a page calls an instant names it for programs, and shows it in
    the reader's zone; beside such nothing has a stamp."""
    ann = await signed_in(stage.world.gate, "ann", is_admin=True)
    before, counts = (await stage.api.get("/api/person")).json()["timezone"], {}
    for zone in ("Asia/Tokyo", "UTC"):
        assert (await stage.api.patch("/api/person", json={"timezone": zone})).is_success
        for path in (*pages(), *stage.below()):
            found = PageTimes((await ann.client.get(f"/console{path}")).text, zone)
            assert found.wrong == [], (path, zone)
            counts[zone] = counts.get(zone, 0) + found.count
    assert min(counts.values()) > 100
    assert (await stage.api.patch("/api/person", json={"timezone": before})).is_success


@pytest.mark.repeated
async def test_each_errand_takes_two_clicks_at_most(stage: Stage, tab: Tab) -> None:
    """With a phone, and at a desk in the long form; and first words are seen before the answer is
    whole. In `make test` those that no other test here does, even if uncounted."""
    widths = ("phone", "desk")[: repeats(2, fast=1)]
    left = [one for one in errands.ERRANDS if not one.is_done_elsewhere]
    wanted = errands.ERRANDS if len(widths) == 2 else left
    done = [one for width in widths for one in await errands.run_all(tab, stage, width, wanted)]
    assert [one for one in done if one.failed or one.clicks > errands.CLICKS_MAX] == []
    await tab.look()
    assert len(await errands.first_words_ms(tab, stage, 1)) == 1
    assert tab.complaints == []


async def test_a_person_talks_and_hears_live(stage: Stage, tab: Tab) -> None:
    """The answer and a follow-up come by themselves; then the conversation is forked, and the fork
    deleted."""
    await tab.go(url(stage, f"/conversations/{KEY}"))
    await tab.type("textarea[name=text]", ask(follow_up("soil", 1, "Bruno is thirsty", keep=True)))
    await tab.enter()
    await shows(tab, "Agent follow-up")
    await tab.press("button[name=turn]")
    assert "/conversations/ann:vigil:plants-fork-" in await tab.run("location.pathname")
    text = await tab.text()
    assert "My basil is called Bruno" in text
    assert "follow-up" not in text
    await tab.type("textarea[name=text]", "Where does it stand?")
    await tab.press_here("form[enctype] button")
    await shows(tab, "re: Where does it stand?")
    await tab.press("article.assistant a[href*=reply]")
    await shows(tab, "In reply to re: Where does it stand?")
    await tab.type("textarea[name=text]", "Are you sure?")
    await tab.press("form[enctype] button")
    await shows(tab, '"re: Where does it stand?"]Are you sure?')
    assert "In reply to" not in await tab.text()
    await tab.press_here("article.user a.tag")
    assert "re: Where" in await tab.run("document.querySelector(':target').innerText")
    await tab.press("article.user a[href*=edit]")
    await tab.type("textarea[name=instead]", "Who waters it?")
    await tab.press("button[name=message]")
    await shows(tab, "re: Who waters it?")
    await shows(tab, "older version")
    fork = (await tab.run("location.pathname")).rpartition("/")[2]
    await tab.run("document.querySelector('#delete').open = true")
    await tab.press("#delete button")
    await shows(tab, "Delete this conversation?")
    await tab.press("#sure button")
    assert await tab.run("location.pathname") == "/console/conversations"
    assert fork not in await tab.text()
    assert (await stage.api.get(f"/api/sessions/{fork}")).status_code == 410
    assert tab.complaints == []


def dead(request: ModelRequest) -> ModelAnswer:
    """Be a model whose server is away."""
    raise ModelError("the model's server can't be reached", is_retryable=True, kind="unreachable")


async def test_the_field_sends_and_the_page_stays_at_the_newest(stage: Stage, tab: Tab) -> None:
    """Enter sends, but for Shift+Enter and a word that is being composed; what comes is followed
    unless somebody scrolled up, and nothing that somebody writes or opened is lost by it."""
    gate, path = stage.world.gate, f"/conversations/{SessionKey('ann', 'vigil', 'field')}"
    for number in range(30):
        await gate.say("ann:vigil:field", f"line {number}", effect_id=f"{number:032x}")
    await tab.go(url(stage, path))
    await tab.until(AT_END)
    await tab.run(GROWS)
    await tab.until(AT_END)
    # Also as the window gets lower, by a phone's keyboard, and as the field takes more room.
    for height in (450, 900):
        shape = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **shape)
        await tab.until(f"innerHeight === {height} && {AT_END}")
    await tab.type("#say textarea", "\n".join("abcdefgh"))
    await tab.until(AT_END)
    await fill(tab, "#say textarea", "")
    assert await tab.run("document.activeElement.name") == "text"
    await tab.run(f"window.isOld = true; {COMPOSED}")
    await tab.call("Input.insertText", text="one")
    await tab.enter(has_shift=True)
    await tab.call("Input.insertText", text="two")
    assert await tab.run("document.activeElement.value") == "one\ntwo"
    await tab.enter()
    await shows(tab, "re: one")
    await tab.until(AT_END)
    # Who hears the page hears it, and who it is by; what has the focus isn't behind the field.
    assert await tab.run("document.querySelector('#heard[role=status]').innerText") == "re: one two"
    assert await tab.run(NAMES) == ["vigil", "ann"]
    assert await tab.run(BEHIND) == 0
    await tab.run("document.querySelector('#say textarea').focus()")
    await tab.until(AT_END)
    # A phone's keyboard has no Shift+Enter.
    await tab.call("Emulation.setTouchEmulationEnabled", enabled=True)
    await tab.call("Input.insertText", text="one line")
    await tab.enter()
    await tab.call("Input.insertText", text="and another")
    assert await tab.run("document.activeElement.value") == "one line\nand another"
    await tab.run("document.activeElement.value = ''")
    await tab.call("Emulation.setTouchEmulationEnabled", enabled=False)
    assert await tab.run("document.activeElement.value") == ""
    await tab.enter()  # nothing to say
    stage.world.agent.held.add("slowly")
    await tab.call("Input.insertText", text="slowly")
    await tab.enter()
    await shows(tab, "nothing came from the model since")
    stage.world.agent.gate.set()
    await shows(tab, "re: slowly")
    await tab.until("document.querySelector('.doing') === null")
    behave, stage.world.agent.behave = stage.world.agent.behave, dead
    await tab.call("Input.insertText", text="are you there?")
    await tab.enter()
    await shows(tab, "it is asked again")
    assert "Is its server running" in await tab.text()
    stage.world.agent.behave = behave
    await shows(tab, "re: are you there?")
    await tab.call("Input.insertText", text="three")
    await tab.enter()
    await shows(tab, "re: three")
    assert await tab.run("document.querySelectorAll('article.user').length") == 4
    await tab.call("Input.insertText", text="half a word")
    await tab.run("scrollTo({top: 0, behavior: 'instant'})")
    await tab.until("scrollY === 0")
    await gate.say("ann:vigil:field", "unasked", effect_id="f" * 32)
    await told(stage, tab, "document.body.innerText.includes('unasked')")
    assert await tab.run("scrollY") == 0
    assert await tab.run("document.activeElement.value") == "half a word"
    assert await tab.run("window.isOld")  # all that on one page
    assert tab.complaints == []


async def test_what_is_half_written_is_there_until_it_is_said(stage: Stage, tab: Tab) -> None:
    """Typed while a message is on its way, left by Stop, by a reload, by a sign-in that ended, and
    as a reply; also if the answer is lost. What is said is in no field any more."""
    path = url(stage, "/conversations/ann:vigil:draft")
    await tab.go(path)
    await tab.run(SLOW)
    await tab.type("#say textarea", "one")
    await tab.enter()
    await tab.until("window.arrive !== undefined")
    await tab.call("Input.insertText", text=" and two")
    await tab.run("arrive()")
    await shows(tab, "re: one")
    assert await tab.run(FIELD) == "and two"
    # What began with that has its name, and what one sees come is read.
    await tab.until("document.querySelector('h1').innerText === 'one'")
    await tab.until("document.title.includes('one')")
    assert await tab.run("document.querySelector('#shelf [aria-current] .dot')") is None

    async def is_read() -> bool:
        listed = (await stage.api.get("/api/sessions", params={"order": "newest"})).json()
        (one,) = (one for one in listed["sessions"] if one["session_key"] == "ann:vigil:draft")
        return not one.get("is_unread")

    await until(is_read, "it is read")
    # An answer that is lost: the same again counts once, other words are others.
    await tab.run(SLOW)
    await tab.enter()
    await tab.until("window.lose !== undefined")
    await tab.run("lose()")
    await shows(tab, "it isn't known whether this was sent")
    await tab.enter()
    await tab.until(f"{FIELD} === ''")
    await tab.run(SLOW)
    await tab.call("Input.insertText", text="buy soil")
    await tab.enter()
    await tab.until("window.lose !== undefined")
    await tab.run("lose()")
    await shows(tab, "it isn't known whether this was sent")
    await tab.call("Input.insertText", text=" and pots")
    await tab.enter()
    await shows(tab, "re: buy soil and pots")
    said = "[...document.querySelectorAll('article.user .prose')].map(one => one.innerText)"
    assert await tab.run(said) == ["one", "and two", "buy soil", "buy soil and pots"]
    await tab.call("Input.insertText", text="and two")
    await tab.press("#say button.stop")
    assert await tab.run(FIELD) == "and two"
    await tab.go("about:blank")
    await tab.go(path)
    assert await tab.run(FIELD) == "and two"
    await tab.press("article.assistant a[href*=reply]")
    await tab.press("#say button.go")
    await shows(tab, '"re: one"]and two')
    assert await tab.run(FIELD) == ""
    # Away and back; signed out elsewhere. The page says so.
    await tab.until("document.getElementById('live')._htmx.sse")  # else it would only begin then
    await tab.call("Network.enable")
    net = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    try:
        await tab.call("Network.emulateNetworkConditions", offline=True, **net)
        await shows(tab, "what is here may be old")
    finally:
        await tab.call("Network.emulateNetworkConditions", offline=False, **net)
    await tab.until("!document.body.innerText.includes('what is here may be old')")
    await tab.call("Network.disable")
    await tab.call("Input.insertText", text="three")
    for one in (await stage.api.get("/api/console/browsers")).json()["browsers"]:
        await stage.api.delete(f"/api/console/browsers/{one['id']}")
    await shows(tab, "You are signed out in this browser")
    await tab.run("window.isOld = true; document.activeElement.form.requestSubmit()")
    await tab.arrived()
    await shows(tab, "In a terminal of a machine where you use Vigil")
    tab.complaints.clear()  # that nobody was signed in
    await tab.go(
        url(stage).removesuffix("/console") + await link_of(stage.world.gate, stage.ann.token)
    )
    await tab.press("form button")
    await tab.go(path)
    assert await tab.run(FIELD) == "three"
    await tab.enter()
    await shows(tab, "re: three")
    await tab.go(path)
    assert await tab.run(FIELD) == ""
    assert tab.complaints == []


async def test_how_far_a_call_is_stands_beside_it(stage: Stage, tab: Tab) -> None:
    """X-1: as its server tells it, as text; what is shown anew still has it, and its end takes it
    away."""
    gate, key, at = stage.world.gate, SessionKey("ann", "vigil", "far"), datetime.now(UTC)
    call = OpenCall(effect_id="f" * 32, tool_use_id="1", tool="files__index", service="executor")
    loop = Loop(
        cause=Cause(id="e", seq=1, type="user_message"), fence=1, begun_at=at, is_direct=True,
        waiting=Waiting(calls=(call,), generation=1, due_at=at + timedelta(minutes=2)),
    )  # fmt: skip
    await gate.turn(str(key), State(turns=1, loop=loop))
    await tab.go(url(stage, f"/conversations/{key}"))
    await shows(tab, "Using files__index")
    told = {"call_id": "f", "tool": "files__index", "done": 1, "total": 2, "text": "<b>a.txt</b>"}

    async def tells(**more: Any) -> None:
        await gate.admin.send(key.doing, json.dumps(told | more).encode())

    async with asyncio.timeout(20):
        while "50 %: <b>a.txt</b>" not in await tab.text():  # it may not listen yet
            await tells()
    await gate.say(str(key), "still at it", effect_id="e" * 32)
    await shows(tab, "still at it")
    await shows(tab, "50 %: <b>a.txt</b>")
    await tells(is_over=True)
    await tab.until("!document.body.innerText.includes('50 %')")
    assert tab.complaints == []


async def test_a_page_behind_others_takes_no_connection(stage: Stage, tab: Tab) -> None:
    """A browser has six to a host: the fourth conversation that was open couldn't send. Who looks
    again reads what was written meanwhile, too."""
    key = SessionKey("ann", "vigil", "behind")

    async def tells(before: str | None, text: str, shown: str) -> None:
        told = {"turn": 1, "attempt": 1, "text": text, "before": before}
        async with asyncio.timeout(20):
            while shown not in await tab.text():  # it may not listen yet
                await stage.world.gate.admin.send(key.live, json.dumps(told).encode())

    added = await tab.call("Page.addScriptToEvaluateOnNewDocument", source=STREAMS)
    try:
        await tab.go(url(stage, f"/conversations/{key}"))
        assert await tab.run("streams.length") == 0
        await tab.run("look(false)")
        await tab.until("streams.length === 2")
        await tells("", "To begin with", "To begin with")
        await tab.until("document.getElementById('live')._htmx.sse")
        assert await tab.run("streams.length") == 2, "one of the page, and one of what is written"
        await tab.run("look(true)")
        assert (
            await tab.run("streams.filter(one => one.readyState !== undefined)[0].readyState") == 2
        )
        await tab.run("look(false)")
        before = "To begin with, and so on, "
        await tells(before, "at the end", f"{before}at the end")
    finally:
        await tab.call("Page.removeScriptToEvaluateOnNewDocument", **added)
    assert tab.complaints == []


async def test_who_comes_in_the_middle_of_an_answer_reads_it_from_its_beginning_on(
    stage: Stage, tab: Tab
) -> None:
    agent, key, begun = stage.world.agent, SessionKey("ann", "vigil", "middle"), asyncio.Event()
    answer: Any = agent.answer
    is_seen = False

    async def streamed(request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        on_text("Once upon a time")
        while not is_seen:
            await asyncio.sleep(0.05)  # as a model takes its time
            on_text(" and then")
            begun.set()
        return await answer(request, on_text)

    agent.answer = streamed  # type: ignore[method-assign]
    try:
        await stage.api.post(f"/api/sessions/{key}/messages", json={"text": "tell a tale"})
        await begun.wait()
        await tab.go(url(stage, f"/conversations/{key}"))
        for length in (1, 400):
            await tab.until(f"document.querySelector('#tokens').textContent.length >= {length}")
            text = await tab.run("document.querySelector('#tokens').textContent")
            assert re.fullmatch("Once upon a time( and then){2,}", text)
    finally:
        is_seen = True
        agent.answer = answer  # type: ignore[method-assign]
    await shows(tab, "re: tell a tale")
    await tab.until("document.querySelector('#tokens').hidden")
    assert tab.complaints == []


async def test_an_answer_of_a_long_talk_is_shown_once_and_heard(stage: Stage, tab: Tab) -> None:
    """Where as many go from the page as come, what was shown in the making gives way, too."""
    agent, key, is_seen = stage.world.agent, SessionKey("ann", "vigil", "long"), asyncio.Event()
    answer: Any = agent.answer
    for number in range(60):
        await stage.world.gate.say(str(key), f"line {number}", effect_id=f"{number:032x}")

    async def streamed(request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        on_text("In the making")
        await is_seen.wait()
        return await answer(request, on_text)

    agent.answer = streamed  # type: ignore[method-assign]
    try:
        await tab.go(url(stage, f"/conversations/{key}"))
        await tab.type("#say textarea", "are you there?")
        await tab.enter()
        await tab.until("document.querySelector('#talk article.user') !== null")
        await shows(tab, "In the making")
    finally:
        is_seen.set()
        agent.answer = answer  # type: ignore[method-assign]
    await shows(tab, "re: are you there?")
    await tab.until("document.querySelector('#heard').innerText === 're: are you there?'")
    assert await tab.run("document.querySelector('#tokens').textContent") == ""
    assert tab.complaints == []


async def test_an_answer_that_is_not_said_yet_gives_way_to_the_one_that_is(
    stage: Stage, tab: Tab
) -> None:
    """Its model was asked about what it promised (ADR 80): the page shows one answer at the end."""
    agent, key, is_seen = stage.world.agent, SessionKey("ann", "vigil", "promised"), asyncio.Event()
    answer: Any = agent.answer
    first, second = "Not yet. I'll look again tomorrow.", "Not yet, and I can't look by myself."

    async def streamed(request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        is_asked = "Nobody has heard this answer yet" in str(request.rows[-1].blocks)
        on_text(second if is_asked else first)
        if is_asked:
            await is_seen.wait()
        return made(second if is_asked else first)

    agent.answer = streamed  # type: ignore[method-assign]
    try:
        await tab.go(url(stage, f"/conversations/{key}"))
        await stage.api.post(f"/api/sessions/{key}/messages", json={"text": "has it come?"})
        await tab.until(
            f"document.querySelector('#tokens').textContent.includes({json.dumps(second)})"
        )
        is_seen.set()
        await tab.until("document.querySelector('#tokens').hidden")
        await shows(tab, second)
    finally:
        is_seen.set()
        agent.answer = answer  # type: ignore[method-assign]
    assert first not in await tab.text()
    assert await tab.run("document.querySelectorAll('.said.assistant').length") == 1
    assert tab.complaints == []


async def test_half_an_answer_that_stops_says_so_and_goes_if_nothing_comes_of_it(
    stage: Stage, tab: Tab
) -> None:
    """Who made it is gone: until another goes on the page says how that is. If its exchange ended
    without it, it goes; what comes later begins anew."""
    gate, key = stage.world.gate, SessionKey("ann", "vigil", "half")
    cause = Cause(id="e", seq=1, type="user_message")
    loop = Loop(cause=cause, fence=1, begun_at=datetime.now(UTC), is_direct=True)
    await gate.turn(str(key), State(turns=1, loop=loop))
    await tab.go(url(stage, f"/conversations/{key}"))
    await shows(tab, "Thinking")

    async def tells(attempt: int, text: str) -> None:
        told = {"turn": 2, "attempt": attempt, "text": text}
        async with asyncio.timeout(20):
            while text not in await tab.text():  # it may not listen yet
                await gate.admin.send(key.live, json.dumps(told).encode())

    await tells(0, "Half of it")
    assert "stopped here" not in await tab.text()
    await shows(tab, "Its answer stopped here for now")
    assert await violations(tab, COLOURS) == []
    await tells(1, "All of it")
    text = await tab.text()
    assert "Thinking" in text
    assert "stopped here" not in text
    assert "Half of it" not in text
    await gate.turn(str(key), State(turns=2))
    await tab.until("document.querySelector('.doing') === null")
    await tab.until("!document.body.innerText.includes('All of it')")
    assert tab.complaints == []


async def test_an_answer_that_another_replica_takes_over_is_made_before_ones_eyes(
    stage: Stage, tab: Tab
) -> None:
    """The cortex ends in the middle of it: the page says that it stopped, and that it is thought
    about, until the one that took it over has said it anew."""
    world, key = stage.world, SessionKey("ann", "vigil", "over")
    answer: Any = world.agent.answer
    taken_over, is_seen, calls = asyncio.Event(), asyncio.Event(), 0

    async def streamed(request: ModelRequest, on_text: Callable[[str], None]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            on_text("Half of it")
            await asyncio.Event().wait()  # for as long as there is that cortex
        taken_over.set()
        await is_seen.wait()
        on_text("Said anew")
        await tab.until("document.querySelector('#tokens').textContent === 'Said anew'")
        return await answer(request, on_text)

    world.agent.answer = streamed  # type: ignore[method-assign]
    try:
        await tab.go(url(stage, f"/conversations/{key}"))
        await tab.type("#say textarea", "how is it?")
        await tab.enter()
        await shows(tab, "Half of it")
        await world.stack.stop("cortex")
        await world.stack.start("cortex")
        await taken_over.wait()
        now = (await stage.api.get(f"/api/sessions/{key}/now")).json()
        assert now["is_thinking"]
        await shows(tab, "Its answer stopped here for now")
        await tab.until("document.querySelector('.doing')?.innerText.includes('Thinking')")
        is_seen.set()
        await shows(tab, "re: how is it?")
    finally:
        is_seen.set()
        world.agent.answer = answer  # type: ignore[method-assign]
    assert "Half of it" not in await tab.text()
    assert tab.complaints == []


async def test_pictures_go_along_and_what_was_said_is_quoted_and_said_anew(
    stage: Stage, tab: Tab
) -> None:
    """Pasted and dropped, with a preview, one removed; shown in the talk. Quoted; answered anew,
    with the older version folded."""
    await tab.go(url(stage, "/conversations/ann:vigil:pictures"))
    await tab.run(CARRY)
    await tab.until("document.querySelectorAll('#chosen canvas').length === 3")
    # An archive is no text, and a fifth is too many; what goes is told from what doesn't.
    await tab.run(f"({MORE})({json.dumps(['notes.zip', '4.pdf', '5.pdf'])})")
    await shows(tab, "Left out: notes.zip, 5.pdf.")
    await tab.press_here("#chosen li:last-child button")
    # One that is too large is refused before it is sent, in the server's own words.
    await tab.run(f"({MORE})(['large.pdf', 'large.zip'])")
    large = await stage.api.post("/api/attachments", content=bytes(3584 * 1024 + 1))
    words = large.json()["detail"].removeprefix("file ")
    await shows(tab, f"Left out: large.pdf. A file {words} (3.5 MiB).")
    assert "Left out: large.zip. Up to 4" in await tab.text()
    assert await tab.run("document.querySelectorAll('#chosen li').length") == 3
    await keep_pictures(tab, "/left-out")
    await tab.press_here("#chosen li:last-child button")
    assert await tab.run("[...document.getElementById('files').files].map(one => one.name)") == [
        "pasted.png", "dropped.png",
    ]  # fmt: skip
    assert await violations(tab, RULES) == []
    await keep_pictures(tab, "/chosen")
    await tab.run(f"({MORE})(['notes.md'])")
    await tab.until("document.querySelectorAll('#chosen li').length === 3")
    await tab.type("#say textarea", "look at these")
    await tab.enter()
    await shows(tab, "re: look at these")
    await tab.until("[...document.images].filter(one => one.naturalWidth === 90).length === 1")
    assert await tab.run("document.querySelectorAll('#chosen li').length") == 0
    # A text is a link, whatever it says, and leads to no page.
    await shows(tab, "notes.md text/plain")
    await tab.press_here("article.assistant button.quote")
    quoted = (await tab.run("document.activeElement.value")).split("\n")
    assert quoted[0] == "> re: look at these"
    assert quoted[-2:] == ["", ""]
    await fill(tab, "#say textarea", "")
    await tab.press("article.user button[form=again]")
    await tab.until("document.querySelectorAll('article.user').length === 2")
    await tab.until("document.querySelector('details.older article.assistant') !== null")
    await shows(tab, "An older version")
    assert await tab.run("document.querySelectorAll('details.older img').length") == 2
    await keep_pictures(tab, "/older")
    assert await violations(tab, RULES) == []
    # What is sent waits for what is still looked at.
    await tab.run(SLOW_LOOK)
    await tab.run(f"({MORE})(['later.md'])")
    await fill(tab, "#say textarea", "and this")
    await tab.enter()
    await tab.enter()
    await tab.run("window.see()")
    await shows(tab, "re: and this")
    carried = "[...document.querySelectorAll('article.user')].at(-1).innerText"
    assert "text/plain" in await tab.run(carried)
    assert await tab.run("document.querySelectorAll('article.user').length") == 3
    assert tab.complaints == []


async def test_files_that_a_browser_brings_back_are_listed(
    stage: Stage, tab: Tab, tmp_path: Path
) -> None:
    """As somebody goes back to what they were about to send."""
    file = tmp_path / "soil.txt"
    file.write_text("without peat")
    await tab.go(url(stage, "/conversations/ann:vigil:files"))
    root = (await tab.call("DOM.getDocument"))["root"]["nodeId"]
    found = await tab.call("DOM.querySelector", nodeId=root, selector="#files")
    await tab.call("DOM.setFileInputFiles", files=[str(file)], nodeId=found["nodeId"])
    await tab.until("document.querySelectorAll('#chosen li').length === 1")
    await tab.go(url(stage, "/inbox"))
    await tab.run("window.isOld = true; history.back()")
    await tab.arrived()
    await tab.until("document.getElementById('files').files.length === 1")
    await tab.until("document.getElementById('chosen').innerText.includes('soil.txt')")
    assert tab.complaints == []


@pytest.mark.repeated
async def test_hostile_answers_act_in_no_way(stage: Stage, tab: Tab) -> None:
    """Three hundred, of each kind, in one conversation: nothing runs, loads, or leaves its place;
    and what is code is copied as it reads."""
    gate = stage.world.gate
    found = [text for _, text in hostile_markdown.cases() if len(text) < CLIP]
    found = Random(1).sample(found, repeats(len(found), fast=120))
    for text in TITLES:  # in the list beside it, in the heading and on pages, too
        await stage.api.post(f"/api/sessions/{TRIED}/messages", json={"text": text})
        await stage.api.patch(f"/api/sessions/{TRIED}", json={"title": text[:120]})
        await tab.go(url(stage, f"/conversations/{TRIED}"))
        assert await tab.run("window.isHurt") is None
    await stage.world.at_rest()
    for number, text in enumerate([*found, WELL_MEANT]):
        await gate.say(str(TRIED), text, effect_id=f"{number:032x}")
    await tab.look(width=390, is_dark=True)
    shown, place = 0, f"/conversations/{TRIED}"
    while place:
        await tab.go(url(stage, place))
        shown += await tab.run("document.querySelectorAll('.prose').length")
        assert await tab.run("document.querySelector(`.prose :is(img, script, svg, form)`)") is None
        assert await tab.run("document.documentElement.scrollWidth") <= 390, place
        earlier = await tab.run("document.querySelector('a[href^=\"?before=\"]')?.search ?? ''")
        place = f"/conversations/{TRIED}{earlier}" if earlier else ""
    assert shown >= len(found)
    for width, rules in ((390, RULES), (1280, (COLOURS, RULES)[repeats(1, fast=0)])):
        await tab.look(width=width, is_dark=width < 600)
        await tab.go(url(stage, f"/conversations/{TRIED}"))
        assert await tab.run("document.documentElement.scrollWidth") <= width
        assert await violations(tab, rules) == []
    assert await tab.run(DRAWN) == [True, True, True]
    await tab.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    await tab.run("[...document.querySelectorAll('.code button')].at(-1).click()")
    await tab.until("[...document.querySelectorAll('.code button')].at(-1).innerText === 'Copied'")
    assert (await tab.run("navigator.clipboard.readText()")).strip() == "if x:\n    pass"
    await tab.run("[...document.querySelectorAll('.code button')].at(-1).click()")
    await tab.run("new Promise((resolve) => setTimeout(resolve, 2500))")  # as long as it says so
    assert "Copied" not in await tab.text()
    await keep_pictures(tab, "/hostile")
    assert await tab.run("window.isHurt") is None
    assert await tab.run("performance.getEntriesByType('resource').every("
                         "one => one.name.startsWith(location.origin))")  # fmt: skip
    assert tab.complaints == []


async def test_it_is_kept_as_an_app_and_nothing_of_a_person_is(stage: Stage, tab: Tab) -> None:
    """Chromium finds nothing that hinders installing it; what is kept is files and one page, that
    is shown where the gateway is away. A browser without room has the files, too."""
    await tab.look()
    await tab.go(url(stage))
    await tab.run("navigator.serviceWorker.ready.then(() => true)")
    await tab.call("Page.enable")
    found = await tab.call("Page.getAppManifest")
    assert found["errors"] == []
    assert json.loads(found["data"])["start_url"] == "/console"
    hindered = (await tab.call("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert [one["errorId"] for one in hindered if one["errorId"] != "in-incognito"] == []
    await tab.go(url(stage, f"/conversations/{KEY}"))
    await tab.until("navigator.serviceWorker.controller !== null")
    await tab.go(url(stage, "/inbox"))
    kept = await tab.run(KEPT)
    assert "/console/away" in kept
    assert {one for one in kept if not one.startswith("/console/static/")} == {"/console/away"}
    assert "can't be reached" in await tab.run("caches.match('/console/away').then(a => a.text())")
    assert tab.complaints == []
    origin = url(stage).removesuffix("/console")
    await tab.call("Storage.overrideQuotaForOrigin", origin=origin, quotaSize=1)
    assert await tab.run(UNKEPT) == [200, 0]
    await tab.call("Storage.overrideQuotaForOrigin", origin=origin)
    assert await tab.run(FOREIGN_WORKER) == "TypeError"
    (refused,) = tab.complaints
    assert "TrustedScriptURL" in refused
    tab.complaints.clear()


async def test_a_phone_has_five_pages_at_hand_and_the_rest_behind_more(
    stage: Stage, tab: Tab
) -> None:
    await tab.look(width=390)
    await tab.go(url(stage, "/cost"))
    seen = "[...document.querySelectorAll('nav a')].filter(one => one.checkVisibility()).length"
    assert await tab.run(seen) == 5
    await tab.press_here("nav.tabs summary")
    assert await tab.run(seen) == len(list(pages()))
    bottom = "document.querySelector('nav.tabs').getBoundingClientRect().bottom"
    assert await tab.run(f"{bottom} === innerHeight")
    assert await violations(tab, RULES) == []
    await tab.press("nav.tabs a[href$=goals]")
    assert await tab.run("location.pathname") == "/console/goals"
    await tab.look()
    assert await tab.run(seen) == len(list(pages()))


async def test_today_alone_tells_what_why_how_much_and_how_to_stop(stage: Stage, tab: Tab) -> None:
    """What waits and what it cost without a click; why it wrote, and the stop, with one each."""
    await tab.go(url(stage))
    today = await tab.text()
    for words in ("May it use shell?", "It freezes tonight", "Seven days", "Pause my agents"):
        assert words in today
    await tab.press(".journal a[href*=why][href*=main]")
    assert "frost" in await tab.text()
    await tab.press("header button[value=on]")
    await shows(tab, "Your agents say and begin nothing unasked")
    await shows(tab, "Undo")
    await tab.press("header button[value=off]")
    await tab.run("window.isOld = true; history.back()")
    await tab.arrived()
    assert "Your agents are paused." not in await tab.text()  # they aren't any more
    # What draws curves is fetched by the page that has one.
    assert await tab.run("typeof uPlot") == "undefined"
    await tab.go(url(stage, "/cost"))
    await tab.run(SWAPS)
    await told(stage, tab, "swaps > 0")
    assert await tab.run("(window.curve = document.querySelector('.curve canvas')) !== null")
    # Its colours are drawn: by night it is drawn anew.
    await tab.look(is_dark=True)
    await tab.until("document.querySelector('.curve canvas') !== window.curve")
    assert await tab.run("document.querySelectorAll('.curve').length") == 1
    await tab.look()
    assert tab.complaints == []


async def test_a_phone_shows_what_stands_in_tables_without_moving_them(
    stage: Stage, tab: Tab
) -> None:
    """Each row as a card, also in a fold."""
    wide = """[...document.querySelectorAll(".stacked")].map(one => [
        one.rows.length > 1, one.parentElement.scrollWidth <= one.parentElement.clientWidth])"""
    more = (
        f"/timetable/{stage.ids['row']}",
        f"/prompts?session={KEY}",
        "/cost?by_day=1&by_model=1",
    )
    await tab.look(width=390)
    for path in ("/tools", "/browsers", "/timetable", "/models", "/health", "/autonomy", *more):
        await tab.go(url(stage, path))
        await tab.run(UNFOLD)
        found = await tab.run(wide)
        assert found != [], path
        assert all(one == [True, True] for one in found), path
    await tab.look()


async def test_a_person_decides_moves_and_undoes(stage: Stage, tab: Tab) -> None:
    """From page to page, each by what it offers."""
    await tab.go(url(stage))
    await tab.press("#needs + ul a")
    await tab.run("document.querySelector('main details').open = true")
    await fill(tab, "textarea[name=input]", '{"command": "df -h"}')
    await tab.press("button[value=edit]")
    await tab.press("#sure button")
    await shows(tab, "Nothing waits for you")
    (decided,) = (await stage.api.get("/api/approvals?state=edited")).json()["approvals"]
    assert decided["edited"] == {"command": "df -h"}
    await tab.go(url(stage, "/tasks"))
    card = f"form:has([value='{stage.ids['other']}'])"
    await tab.press(f"{card} button[value=ready]")
    moved = (await stage.api.get(f"/api/tasks/{stage.ids['other']}")).json()
    assert ("ready", "ann") in {(one["status"], one["by"]) for one in moved["history"]}
    asked = approvals.request(ANN, "c" * 32, input={"command": "du -sh"}, risk="external")
    await approvals.ask(stage.world.gate, asked)
    await tab.go(url(stage, f"/inbox/{asked.id}"))
    await tab.press("button[value=always]")
    assert "du -sh" in await tab.text()
    assert await violations(tab, RULES) == []
    await tab.press("#sure button")
    await tab.go(url(stage, "/grants"))
    assert "the command is du -sh" in await tab.text()
    for _ in range(2):  # this one, and one that was there
        await tab.press("main button.stop")
        await tab.press("#sure button")
    assert "Nothing is allowed" in await tab.text()
    await tab.go(url(stage, f"/timetable/{stage.ids['row']}"))
    await tab.press("button[value=pause]")
    assert await tab.run("document.querySelector('button[value=resume]') !== null")
    assert await violations(tab, RULES) == []
    await tab.press(".undo button")
    await tab.press("button[value=pause]")
    await tab.run(
        "document.getAnimations().forEach(one => one.finish())"
    )  # the ten seconds are over
    assert await tab.run("getComputedStyle(document.querySelector('.undo')).display") == "none"
    await tab.go(url(stage, "/deliveries"))
    (letter,) = (await stage.api.get("/api/dead?service=delivery")).json()["letters"]
    await tab.press(f"form:has([value='{letter['id']}']) button[value=requeue]")
    assert letter["id"] not in await tab.text()
    await tab.go(url(stage, "/memories"))
    await tab.type("input[name=q]", "basil")
    await tab.press("[role=search] button")
    assert "called Bruno" in await tab.text()
    await tab.run("document.querySelector('main details:has(form)').open = true")
    await fill(tab, "details input[name=source]", "notes")
    await tab.press("details button")
    assert "Undo this source?" in await tab.text()
    await tab.press("#sure button")
    assert "called Bruno" not in await tab.text()
    assert tab.complaints == []


async def told(stage: Stage, tab: Tab, holds: str) -> None:
    """Tell that something happened, until the page has noticed: its stream may just begin."""

    async def is_noticed() -> bool:
        await signal(stage.world.gate, ANN)
        return bool(await tab.run(holds))

    await until(is_noticed, holds, within_s=30)


async def test_an_address_is_paired_and_given_up_again(stage: Stage, tab: Tab) -> None:
    """D-2: the code is shown once; what is wrong with the account stands there in words."""
    await tab.go(url(stage, "/mail"))
    await shows(tab, "can't be reached")
    await shows(tab, "ann@b.example since")
    await fill(tab, "input[type=email]", "ann.new@b.example")
    await tab.press("button[value=pair]")
    await shows(tab, "Send this code from ann.new@b.example to vigil@a.example")
    code = await tab.run("document.querySelector('#made').textContent")
    assert re.fullmatch("[A-Z2-9]{5}-[A-Z2-9]{5}", code)
    (person,) = await pairs.people_of(stage.world.admin, CHANNEL)
    assert person.code is not None
    assert person.code.hash == pairs.hash_of(code)
    await tab.go(url(stage, "/mail"))
    await shows(tab, "A code is awaited from ann.new@b.example")
    assert code not in await tab.text()
    await tab.press("button[aria-label='Give it up: ann@b.example']")
    await shows(tab, "Give this address up?")
    await tab.press("#sure button")
    await shows(tab, "No address of yours is paired.")
    await tab.press("button[value=try]")
    await shows(tab, "The test of post")


async def test_contacts_are_found_and_calendars_say_how_they_are(stage: Stage, tab: Tab) -> None:
    await tab.go(url(stage, "/contacts"))
    await shows(tab, "counts as known")
    await shows(tab, "Ben Ray")
    await shows(tab, "can't be read: No such file")
    await fill(tab, "main input[type=search]", "nobody")
    await tab.press("main form[role=search] button")
    await shows(tab, "Nobody of that name.")
    await tab.go(url(stage, "/calendars"))
    await shows(tab, "for the agent vigil")


async def test_pages_change_by_themselves_and_never_under_ones_hands(
    stage: Stage, tab: Tab
) -> None:
    gate = stage.world.gate
    await tab.go(url(stage, "/inbox"))
    await approvals.ask(gate, approvals.request(ANN, "a" * 32, reason=HOSTILE))
    await told(stage, tab, "document.body.innerText.includes('window.isHurt')")
    assert await tab.run("window.isHurt") is None
    await tab.run("document.querySelector('main details').open = true")
    await tab.type("textarea[name=input]", "half a sentence")
    await approvals.ask(gate, approvals.request(ANN, "b" * 31 + "a", reason="news from the agent"))
    await told(stage, tab, "!document.getElementById('news').hidden")
    assert "half a sentence" in await tab.run("document.activeElement.value")
    assert "news from the agent" not in await tab.text()
    await tab.press("#news a")
    assert "news from the agent" in await tab.text()
    # In the conversation that asks, too: it comes, is decided elsewhere, and another one there.
    await tab.go(url(stage, f"/conversations/{ANN}"))
    there = approvals.request(ANN, "d" * 32, input={"command": "uptime"}, reason="to see the load")
    await approvals.ask(gate, there)
    await told(stage, tab, "document.body.innerText.includes('to see the load')")
    done = replace(there, state="rejected", decided_at=there.asked_at, decided_by="ann")
    await approvals.list_on_board(gate, done, turn_seq=10**6)
    card = f"document.getElementById('a-{there.id}').innerText"
    await told(stage, tab, f"{card}.includes('rejected')")
    last = approvals.request(ANN, "e" * 32, reason="the last one")
    await approvals.ask(gate, last)
    await told(stage, tab, "document.body.innerText.includes('the last one')")
    await tab.press(f"#a-{last.id} button[value=accept]")
    assert "rm" in await tab.run("document.querySelector('pre').innerText")
    await tab.press("#sure a")
    assert await tab.run("location.pathname") == f"/console/conversations/{ANN}"
    await tab.press(f"#a-{last.id} button[value=accept]")
    await tab.press("#sure button")
    assert await tab.run("location.pathname") == f"/console/conversations/{ANN}"
    (order,) = [
        one
        for one in await gate.admin.read(ANN.stream, [ANN.in_event("control")])
        if last.id.encode() in one.data
    ]
    assert b'"verdict":"accept"' in order.data
    assert await violations(tab, RULES) == []
    assert tab.complaints == []


async def test_what_is_refused_is_asked_for_again(stage: Stage, tab: Tab) -> None:
    """The stream that a page follows, already as it begins, and the page itself: until then it
    says that it may be old; what is gone is said to be changed."""
    added = await tab.call("Page.addScriptToEvaluateOnNewDocument", source=REFUSED)
    try:
        await tab.go(url(stage, "/tasks"))
        await shows(tab, "Vigil doesn't answer")
        await tab.run("window.refuses = 401")
        await shows(tab, "You are signed out")
        assert "Vigil doesn't answer" not in await tab.text()
        await tab.run("window.refuses = 0")
        await tab.until("!/signed out|doesn't answer/.test(document.body.innerText)")
        await tab.run("window.refuses = 429; window.refused = 0")
        await stage.api.post("/api/tasks", json={"title": "Ask again", "description": ""})
        # More often than it is told of.
        await tab.until("refused > 5")
        await tab.run("window.refuses = 0")
        await shows(tab, "Ask again")
    finally:
        await tab.call("Page.removeScriptToEvaluateOnNewDocument", **added)
    path = "/api/sessions/ann:vigil:gone"
    await stage.api.post(f"{path}/messages", json={"text": "hello"})
    await tab.go(url(stage, "/conversations/ann:vigil:gone"))
    await shows(tab, "re: hello")
    assert (await stage.api.delete(path)).is_success
    await shows(tab, "Something changed")
    assert tab.complaints != []
    assert [one for one in tab.complaints if "410 (Gone)" not in one] == []
    tab.complaints.clear()


async def test_a_download_keeps_nothing_from_the_page(stage: Stage, tab: Tab) -> None:
    """As one begins, a browser says that the page is left."""
    await tab.go(url(stage, "/tasks"))
    await tab.run("window.heard = 0; addEventListener('changed', () => heard++, true)")
    await told(stage, tab, "heard > 0")
    await tab.run("window.heard = 0; dispatchEvent(new Event('beforeunload'))")
    await stage.api.post("/api/tasks", json={"title": "While it loads", "description": ""})
    await tab.until("heard > 0")
    await shows(tab, "While it loads")
    assert tab.complaints == []


async def test_what_is_said_to_have_changed_is_not_once_it_is_shown(stage: Stage, tab: Tab) -> None:
    """And what is open in a fold that is closed holds nothing back."""
    row = {"name": "hourly", "interval_s": 3600, "prompt": "Look at Bruno"}
    made = (await stage.api.post("/api/cron", json=row)).json()
    await tab.go(url(stage, f"/timetable/{made['id']}"))
    assert await tab.run("document.querySelector('main details details[open]') !== null")
    await tab.run(SWAPS)
    await told(stage, tab, "swaps > 0")
    await tab.run("document.querySelector('main details').open = true")
    await told(stage, tab, "!document.getElementById('news').hidden")
    await tab.run("document.querySelector('main details').open = false; window.swaps = 0")
    await told(stage, tab, "swaps > 0")
    assert await tab.run("document.getElementById('news').hidden")
    assert tab.complaints == []


async def test_a_form_that_is_pressed_twice_is_sent_once(stage: Stage, tab: Tab) -> None:
    await tab.go(url(stage, "/tasks"))
    await tab.type("input[name=title]", "Water Bruno")
    button = "document.querySelector('form:has(input[name=title]) button')"
    assert await tab.run(f"{TWICE}({button})") == 1


async def test_a_call_is_edited_and_let_run_without_scripts(stage: Stage, tab: Tab) -> None:
    gate = stage.world.gate
    await tab.look(script=False)
    await approvals.ask(gate, approvals.request(ANN, "b" * 32, reason="the disk is full"))
    await tab.go(url(stage, f"/inbox/{'b' * 32}"))
    await tab.run("document.querySelector('main details').open = true")
    await fill(tab, "textarea", '{"command": "df -h"}')
    await tab.press("button[value=edit]")
    await tab.press("#sure button")
    assert await tab.run("location.pathname") == "/console/inbox"
    orders = await gate.admin.read(ANN.stream, [ANN.in_event("control")])
    assert b'"input":{"command":"df -h"}' in orders[-1].data
    await tab.look()


async def test_the_keyboard_leads_everywhere(stage: Stage, tab: Tab) -> None:
    await tab.go(url(stage))
    await tab.run("window.isOld = true")
    await tab.key("g")
    await tab.key("c")
    await tab.arrived()
    assert await tab.run("location.pathname") == "/console/conversations"
    await tab.key("/")
    assert await tab.run("document.activeElement.name") == "words"
    await tab.run("document.activeElement.blur()")
    await tab.key("?")
    assert await tab.run("document.getElementById('keys').open")
    await tab.press_here("#keys-on")
    await tab.press_here("#keys button")
    await tab.key("/")
    assert await tab.run("document.activeElement.name") != "words"
    await tab.run("localStorage.clear()")
    # Ctrl-K: from anywhere, whatever has the focus, and also where something is half written.
    await tab.go(url(stage, "/welcome"))
    await _goes_anywhere(tab)
    await tab.go(url(stage, f"/conversations/{KEY}"))
    await tab.run("window.isOld = true")
    await tab.run("document.querySelector('article.user a[href*=edit]').click()")
    await tab.arrived()
    await tab.call("Input.insertText", text="half")
    await _goes_anywhere(tab)
    await tab.call("Input.insertText", text="repot")
    await tab.until(
        "document.querySelector('#palette-found a')?.innerText.startsWith('Repot Bruno')"
    )
    assert await violations(tab, RULES) == []
    await keep_pictures(tab, "/palette")
    await tab.run("window.isOld = true")
    await tab.enter()
    await tab.arrived()
    assert await tab.run("location.pathname") == f"/console/tasks/{stage.ids['task']}"
    assert tab.complaints == []


async def test_the_palette_finds_what_was_written_last(stage: Stage, tab: Tab) -> None:
    """Where answers take long, and by Enter before there is one; and the page keeps its name."""
    await tab.go(url(stage))
    title = await tab.run("document.title")
    await tab.run(SLOW_FINDS)
    await _goes_anywhere(tab)
    first = "document.querySelector('#palette-found a').innerText"
    assert not (await tab.run(first)).startswith("Repot")
    await tab.run("window.isSlow = true")
    for part, whole in (("r", "r"), ("epo", "repo"), ("t", "repot")):
        await tab.call("Input.insertText", text=part)
        await tab.until(f"finds.at(-1) === '{whole}'")
    await tab.run("window.isSlow = false")
    await tab.until(f"{first}.startsWith('Repot Bruno')")
    assert await tab.run("document.title") == title
    await tab.run("window.isSlow = window.isOld = true")
    await fill(tab, "#palette input", "balcony")
    await tab.enter()
    await tab.arrived()
    assert await tab.run("location.pathname + location.search") == "/console/find?q=balcony"
    assert tab.complaints == []


async def test_the_focus_stays_with_what_it_is_on(stage: Stage, tab: Tab) -> None:
    """As a request comes before it, the button is still of the request that it was of; as that is
    decided elsewhere, what leads on before it has the focus, and no button that would act."""
    gate, now = stage.world.gate, datetime.now(UTC)
    key = SessionKey("ann", "vigil", "focus")
    mine = approvals.request(key, "8" * 32, expires_at=now + timedelta(minutes=9))
    await approvals.ask(gate, mine)
    await tab.go(url(stage))
    await tab.run(f"document.querySelector('#n-{mine.id} button[value=reject]').focus()")
    sooner = approvals.request(key, "9" * 32, expires_at=now + timedelta(minutes=5))
    await approvals.list_on_board(gate, sooner)
    held = "document.activeElement.closest('li')?.id"
    await told(stage, tab, f"document.getElementById('n-{sooner.id}') !== null")
    assert await tab.run(f"[{held}, document.activeElement.value]") == [f"n-{mine.id}", "reject"]
    assert await tab.run("document.activeElement.form.elements.id.value") == mine.id
    done = replace(mine, state="rejected", decided_at=mine.asked_at, decided_by="ann")
    await approvals.list_on_board(gate, done, turn_seq=10**6)
    await told(stage, tab, f"document.getElementById('n-{mine.id}') === null")
    assert await tab.run("document.activeElement.matches('main a[href]')")
    await approvals.list_on_board(
        gate, replace(sooner, state="rejected", decided_at=now, decided_by="ann"), turn_seq=10**6
    )
    assert tab.complaints == []


async def test_tab_reaches_whatever_can_be_pressed_and_each_has_a_name(
    stage: Stage, tab: Tab
) -> None:
    """In the order of the page, and one sees where one is."""
    for path in ("", f"/conversations/{KEY}"):
        await tab.go(url(stage, path))
        there = await tab.run(NOTED)
        assert [one for one in there if not one] == []
        await tab.run("document.querySelector('.skip').focus()")
        for _ in range(len(there) + 4):
            await tab.tab()
        # Beside those there are boxes that are moved by keys, which a browser leads to by itself.
        found = await tab.run("window.seen")
        seen = [one for one in found if one[0] >= 0][: len(there)]
        assert [at for at, _ in seen] == list(range(len(there))), path
        assert [there[at] for at, is_seen in seen[1:] if not is_seen] == [], path


async def test_what_is_pressed_as_soon_as_a_page_is_there_is_done(stage: Stage, tab: Tab) -> None:
    added = await tab.call("Page.addScriptToEvaluateOnNewDocument", source=LATE)
    try:
        await tab.go(url(stage))
        await _goes_anywhere(tab)
    finally:
        await tab.call("Page.removeScriptToEvaluateOnNewDocument", **added)


async def _goes_anywhere(tab: Tab) -> None:
    await tab.call("Input.dispatchKeyEvent", type="keyDown", key="k", code="KeyK", modifiers=2)
    await tab.until("document.querySelector('#palette[open] #palette-found a') !== null")


async def test_a_phone_breaks_no_word_that_fits_and_lets_none_out_of_its_card(
    stage: Stage, tab: Tab
) -> None:
    """In tables, and of a source that is one long word; nor does a desk in an
    answer's table."""
    source = f"cron:{'0123456789abcdef' * 4}"
    saved = {"content": "Basil likes sun", "source": source, "userId": "ann"}
    assert (await stage.api.post("/api/memories", json=saved)).is_success
    await tab.look(width=390)
    await tab.go(url(stage, f"/memories?source={source}"))
    await shows(tab, "Basil likes sun")
    assert await tab.run(
        "[...document.querySelectorAll('article')].every(one => one.scrollWidth <= one.clientWidth)"
    )
    for path in ("/timetable", "/health"):
        await tab.go(url(stage, path))
        assert await tab.run(BROKEN_WORDS) == []
    await tab.look()
    cells = " | ".join(("carrots, radishes and peas", "bed 1", "0.5", "12", "when it is dry"))
    rows = "".join(f"| {month} | {cells} |\n" for month in ("January", "February", "September"))
    table = f"| month | what to sow | where | depth in cm | rows | note |\n{'|-' * 6}|\n{rows}"
    await stage.world.gate.say("ann:vigil:table", table, effect_id="a" * 32)
    await tab.go(url(stage, "/conversations/ann:vigil:table"))
    assert await tab.run(BROKEN_WORDS) == []


async def looked(stage: Stage, tab: Tab, path: str) -> list[list[str]]:
    """Open a page, and return what axe-core finds, and whether a phone is too narrow for it."""
    await tab.look(width=390)
    await tab.go(url(stage, path))
    await tab.run(UNFOLD)
    is_wide = await tab.run("document.documentElement.scrollWidth > 390")
    await tab.look()
    found = [["is wider than the screen"]] * is_wide + await violations(tab, RULES)
    await tab.run(FOLD)
    return found


async def violations(tab: Tab, rules: Any, within: str = "document") -> list[list[str]]:
    """Return what axe-core finds, if it's here."""
    if not AXE.exists():
        return []
    if not await tab.run("'axe' in window"):
        await tab.run(f"{AXE.read_text()}; 0")
    options = json.dumps({"runOnly": rules, "resultTypes": ["violations"]})
    found: list[list[str]] = await tab.run(
        f"axe.run({within}, {options}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    return found


async def keep_pictures(tab: Tab, path: str) -> None:
    """Keep how a page looks, if somebody wants to see."""
    if not PICTURES:
        return
    folder = Path(PICTURES)
    folder.mkdir(parents=True, exist_ok=True)
    name = _NAMELESS.sub("one", path.partition("?")[0]).strip("/").replace("/", "-") or "today"
    for kind, width in (("desk", 1280), ("phone", 390)):
        for is_dark in (False, True):
            await tab.look(is_dark=is_dark, width=width)
            await tab.picture(folder / f"{name}-{kind}-{'dark' if is_dark else 'light'}.png")


async def test_no_other_page_frames_it_or_sends_its_forms(stage: Stage, tab: Tab) -> None:
    """From the same machine on another port, which is the same site to a browser."""
    await tab.go(url(stage))
    await tab.go(f"http://localhost:{stage.world.gate.port}/openapi.json")
    await tab.run(
        f"""(() => {{
            document.body.innerHTML = '<iframe></iframe><form method=post></form>';
            document.querySelector('iframe').src = '{url(stage)}';
            const form = document.querySelector('form');
            form.action = '{url(stage, "/pause")}';
            for (const [name, value] of [['whose', 'mine'], ['to', 'on']]) {{
                const field = document.createElement('input');
                field.name = name; field.value = value; form.append(field);
            }}
        }})()"""
    )

    async def is_refused() -> bool:
        return any("frame" in one.lower() for one in tab.complaints)

    await until(is_refused, "the frame stays empty")
    await tab.run("window.isOld = true; document.querySelector('form').submit()")
    await tab.arrived()
    assert "this has to come from a page of the console itself" in await tab.text()
    await tab.go(url(stage))
    assert "End my pause" not in await tab.text()


@pytest.mark.repeated
async def test_what_admins_see_and_who_is_not_signed_in(stage: Stage, tab: Tab) -> None:
    """The last one: from here on the browser is an admin's. In `make test` the pages on which an
    admin sees some kind of element that others don't."""
    wrong = [(path, *one) for path in BARE for one in await looked(stage, tab, path)]
    root = await stage.world.gate.token("root", is_admin=True)
    await tab.go(f"http://127.0.0.1:{stage.world.gate.port}{await link_of(stage.world.gate, root)}")
    wrong += [("enter", *one) for one in await violations(tab, RULES)]
    await tab.press("form button")
    admin = await signed_in(stage.world.gate, "root", is_admin=True)
    for path in await first_of(OF_ADMINS, admin, await signed_in(stage.world.gate, "ann")):
        wrong += [(path, "admin", *one) for one in await looked(stage, tab, path)]
        await keep_pictures(tab, f"{path or '/today'}-admin")
    assert not wrong
