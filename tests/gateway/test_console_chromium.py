"""The console in a real Chromium: with scripts and without, live, by keyboard, light and dark."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support import approvals, chromium
from tests.support.chromium import Tab
from tests.support.console import link_of, pages, signal
from tests.support.gateway import Gate, until
from tests.support.remembering import running_memories
from vigil.subjects import SessionKey

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(chromium.binary() is None, reason="there is no Chromium here"),
]
ANN: Final = SessionKey("ann", "vigil", "t1")
HOSTILE: Final = "</textarea><script>window.isHurt = 1</script><img src=x onerror=window.isHurt=1>"
AXE: Final = os.environ.get("VIGIL_AXE", "")
"""The path of axe.min.js, of the package axe-core."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(gate: Gate, tmp_path_factory: Any) -> AsyncIterator[Tab]:
    """Ann is signed in: by the link, as `vigil console` opens it."""
    async with chromium.opened(tmp_path_factory.mktemp("profile")) as tab:
        await tab.look()
        link = await link_of(gate, await gate.token("ann"))
        await tab.go(f"http://127.0.0.1:{gate.port}{link}")
        await tab.press("form button")
        assert await tab.run("location.pathname") == "/console"
        yield tab


def url(gate: Gate, path: str = "") -> str:
    return f"http://127.0.0.1:{gate.port}/console{path}"


async def told(gate: Gate, tab: Tab, holds: str) -> None:
    """Tell that something happened, until the page has noticed: its stream may just begin."""

    async def is_noticed() -> bool:
        await signal(gate, ANN)
        return bool(await tab.run(holds))

    await until(is_noticed, holds, within_s=30)


async def test_pages_change_by_themselves_and_never_under_ones_hands(gate: Gate, tab: Tab) -> None:
    await tab.go(url(gate, "/inbox"))
    await approvals.ask(gate, approvals.request(ANN, "a" * 32, reason=HOSTILE))
    await told(gate, tab, "document.body.innerText.includes('window.isHurt')")
    assert await tab.run("window.isHurt") is None
    await tab.go(url(gate, f"/conversations/{ANN}"))
    await tab.type("textarea", "half a sentence")
    await gate.say(str(ANN), "news from the agent", effect_id="e1")
    await told(gate, tab, "!document.getElementById('news').hidden")
    assert await tab.run("document.querySelector('textarea').value") == "half a sentence"
    assert "news from the agent" not in await tab.text()
    await tab.press("#news a")
    assert "news from the agent" in await tab.text()
    assert tab.complaints == []


async def test_a_call_is_edited_and_let_run_without_scripts(gate: Gate, tab: Tab) -> None:
    await tab.look(script=False)
    await approvals.ask(gate, approvals.request(ANN, "b" * 32, reason="the disk is full"))
    await tab.go(url(gate, f"/inbox/{'b' * 32}"))
    await tab.run("document.querySelector('details').open = true")
    await tab.run("document.querySelector('textarea').value = ''")
    await tab.type("textarea", '{"command": "df -h"}')
    await tab.press("button[value=edit]")
    assert await tab.run("location.pathname") == "/console/inbox"
    (order,) = await gate.admin.read(ANN.stream, [ANN.in_event("control")])
    assert b'"input":{"command":"df -h"}' in order.data
    await tab.look()


async def test_the_keyboard_leads_everywhere(gate: Gate, tab: Tab) -> None:
    await tab.go(url(gate))
    await tab.run("window.isOld = true")
    await tab.key("g")
    await tab.key("c")
    await tab.arrived()
    assert await tab.run("location.pathname") == "/console/conversations"
    await tab.key("/")
    assert await tab.run("document.activeElement.name") == "kind"
    await tab.run("document.activeElement.blur()")
    await tab.key("?")
    assert await tab.run("document.getElementById('keys').open")
    await tab.press_here("#keys-on")
    await tab.press_here("#keys button")
    await tab.key("/")
    assert await tab.run("document.activeElement.name") != "kind"
    await tab.run("localStorage.clear()")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
async def test_each_page_fits_and_is_for_everybody(gate: Gate, tab: Tab, is_dark: bool) -> None:
    """Nothing is against the policy; at a phone's width nothing is cut; axe finds nothing."""
    await tab.look(is_dark=is_dark, width=390)
    below = (f"/conversations/{ANN}", f"/conversations/{ANN}/timeline", f"/inbox/{'a' * 32}")
    wrong = []
    for path in (*pages(), *below):
        await tab.go(url(gate, path))
        if await tab.run("document.documentElement.scrollWidth > innerWidth"):
            wrong.append((path, "is wider than the screen"))
        for one in await violations(tab):
            wrong.append((path, *one))
    assert not wrong
    assert tab.complaints == []
    await tab.look()


async def violations(tab: Tab) -> list[list[str]]:
    """Return what axe-core finds, if it's here."""
    if not AXE:
        return []
    await tab.run(Path(AXE).read_text() + ";0")
    tags = "['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']"
    found: list[list[str]] = await tab.run(
        f"axe.run({{runOnly: {tags}}}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    return found


async def test_no_other_page_frames_it_or_sends_its_forms(gate: Gate, tab: Tab) -> None:
    """From the same machine on another port, which is the same site to a browser."""
    await tab.go(url(gate))
    other = f"http://localhost:{gate.port}/openapi.json"
    await tab.go(other)
    await tab.run(
        f"""(() => {{
            document.body.innerHTML = '<iframe></iframe><form method=post></form>';
            document.querySelector('iframe').src = '{url(gate)}';
            const form = document.querySelector('form');
            form.action = '{url(gate, "/pause")}';
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
    await tab.go(url(gate))
    assert "End my pause" not in await tab.text()
