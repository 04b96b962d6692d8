"""A real Chromium, driven over its own protocol as a person would: look, type, press, read.

Only what the console's tests need. It has a profile of its own, and ends with the test.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2
import websockets
from websockets.asyncio.client import ClientConnection

from tests.support.pauses import pauses
from vigil.processes.process import start

WHOLE: Final = ("chromium", "chromium-browser", "google-chrome")
NAMES: Final = ("chromium-headless-shell", *WHOLE)
"""The first has nothing around a page, and takes a third less of the processor."""
OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    # What a browser does by itself over the internet, or for nobody.
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-quic", "--no-first-run", "--remote-debugging-port=0",
)  # fmt: skip
WAIT_S: Final = 30.0
PICTURE_HEIGHT_MAX: Final = 2_000
"""In pixels."""


def binary(names: Sequence[str] = NAMES) -> str | None:
    """Return the path of a Chromium of this machine, None: there is none."""
    named = os.environ.get("VIGIL_CHROMIUM")
    return named or next((found for name in names if (found := shutil.which(name))), None)


GOING = "Inspected target navigated or closed"
"""What is answered of a page that is left before it answers."""


class Tab:
    """A page that is open. What it reports against its policy, or fails at, is kept."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.complaints: list[str] = []
        self.registrations: dict[str, str] = {}
        """Of service workers: id by scope."""
        self.active: set[str] = set()
        """Ids of those whose worker takes what is pushed."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(websockets.exceptions.ConnectionClosed):
            async for raw in self._connection:
                told = json.loads(raw)
                if "id" in told:
                    waiting = self._waiting.pop(told["id"])
                    if not waiting.done():  # nobody may wait for it any more
                        waiting.set_result(told)
                elif told["method"] == "Log.entryAdded":
                    entry = told["params"]["entry"]
                    if entry["level"] == "error":
                        self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
                elif told["method"] == "ServiceWorker.workerRegistrationUpdated":
                    for one in told["params"]["registrations"]:
                        self.registrations[one["scopeURL"]] = one["registrationId"]
                elif told["method"] == "ServiceWorker.workerVersionUpdated":
                    for one in told["params"]["versions"]:
                        if one["status"] == "activated":
                            self.active.add(one["registrationId"])
                elif told["method"] == "Runtime.exceptionThrown":
                    self.complaints.append(json.dumps(told["params"]["exceptionDetails"]))

    async def call(self, method: str, **parameters: Any) -> Any:
        """Give one order of the protocol."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        order = {"id": number, "method": method, "params": parameters}
        await self._connection.send(json.dumps(order))
        async with asyncio.timeout(WAIT_S):
            told = await answer
        assert "error" not in told, (method, told)
        return told["result"]

    async def run(self, source: str) -> Any:
        """Return what an expression of the page's own language comes to."""
        told = await self.call(
            "Runtime.evaluate", expression=source, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def until(self, source: str) -> None:
        """Wait until an expression holds. Raises: TimeoutError, with where it waited."""
        try:
            async with asyncio.timeout(WAIT_S):
                pause_s = pauses()
                while not await self._holds(source):
                    await asyncio.sleep(next(pause_s))
        except TimeoutError:
            where = await self.run("[location.href, document.activeElement?.outerHTML]")
            found = f"{where} {self.complaints}"
            raise TimeoutError(f"not within {WAIT_S} s: {source}: {found}") from None

    async def _holds(self, source: str) -> bool:
        try:
            told = await self.call("Runtime.evaluate", expression=source, returnByValue=True)
        except AssertionError as error:
            if GOING in str(error):
                return False
            raise
        return bool(told["result"].get("value"))  # of a page that is just going, nothing

    async def go(self, url: str) -> None:
        """Open a page, and wait until it is there."""
        await self.run("window.isOld = true")
        await self.call("Page.navigate", url=url)
        await self.arrived()

    async def arrived(self) -> None:
        await self.until("!window.isOld && document.readyState === 'complete'")

    async def press(self, selector: str) -> None:
        """Press a button that leads on, and wait until the next page is there."""
        try:
            await self.run(
                f"window.isOld = true; document.querySelector({json.dumps(selector)}).click()"
            )
        except AssertionError as error:
            if GOING not in str(error):
                raise
        await self.arrived()

    async def press_here(self, selector: str) -> None:
        """Press what does something on this page."""
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")

    async def type(self, selector: str, text: str) -> None:
        await self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.call("Input.insertText", text=text)

    async def key(self, text: str) -> None:
        """Press a key that writes `text`."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=text, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=text)

    async def tab(self) -> None:
        """Press Tab."""
        key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    async def enter(self, *, has_shift: bool = False) -> None:
        """Press Enter."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        modifiers = 8 if has_shift else 0
        await self.call(
            "Input.dispatchKeyEvent", type="keyDown", text="\r", modifiers=modifiers, **key
        )
        await self.call("Input.dispatchKeyEvent", type="keyUp", modifiers=modifiers, **key)

    async def picture(
        self, file: Path, *, scale: float = 1, height_max: int = PICTURE_HEIGHT_MAX
    ) -> None:
        """Keep how the page looks, from its top; as WebP, if that's the file's ending."""
        size = await self.run("[document.documentElement.scrollHeight, innerWidth]")
        width, height = size[1], min(size[0], height_max)
        await self._resize(width, height)  # what stands at the window's end stands there
        await self.run("scrollTo({top: 0, behavior: 'instant'})")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        kind = {"format": "webp", "quality": 45} if file.suffix == ".webp" else {"format": "png"}
        shot = await self.call("Page.captureScreenshot", clip=clip, **kind)
        await self._resize(width)
        file.write_bytes(base64.b64decode(shot["data"]))

    async def _resize(self, width: int, height: int = 900) -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.call("Emulation.setDeviceMetricsOverride", **shape)

    async def text(self) -> str:
        return str(await self.run("document.body.innerText"))

    async def look(self, *, is_dark: bool = False, width: int = 1280, script: bool = True) -> None:
        """Set how the page is shown from now on."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self._resize(width)
        await self.call("Emulation.setScriptExecutionDisabled", value=not script)


@contextlib.asynccontextmanager
async def service_worker(folder: Path) -> AsyncIterator[Tab]:
    """The worker that runs in a Chromium with that profile, as something to run code in.

    Raises: TimeoutError, none runs.
    """
    port = await _port_of(folder / "DevToolsActivePort")
    async with asyncio.timeout(WAIT_S), httpx2.AsyncClient() as client:
        pause_s = pauses()
        while True:
            there = (await client.get(f"http://127.0.0.1:{port}/json/list")).json()
            urls = [one["webSocketDebuggerUrl"] for one in there if one["type"] == "service_worker"]
            if urls:
                break
            await asyncio.sleep(next(pause_s))
    async with websockets.connect(urls[0], max_size=None, proxy=None) as connection:
        yield Tab(connection)


@contextlib.asynccontextmanager
async def opened(folder: Path, *, notifies: bool = False) -> AsyncIterator[Tab]:
    """A Chromium with one empty tab; a whole one, if it `notifies`.

    Raises: FileNotFoundError, there is none.
    """
    found = binary(WHOLE if notifies else NAMES)
    if found is None:
        raise FileNotFoundError("no Chromium")
    options = [*OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    process = await start(
        found,
        *options,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port = await _port_of(folder / "DevToolsActivePort")
        async with httpx2.AsyncClient() as client:
            tabs = (await client.get(f"http://127.0.0.1:{port}/json/list")).json()
        (url,) = [one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page"]
        async with websockets.connect(url, max_size=None, proxy=None) as connection:
            tab = Tab(connection)
            for part in ("Page", "Runtime", "Log"):
                await tab.call(f"{part}.enable")
            await tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
            yield tab
    finally:
        # The command may be a script that started it: all that came of it ends.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _port_of(file: Path) -> int:
    async with asyncio.timeout(WAIT_S):
        pause_s = pauses()
        while not file.exists() or "\n" not in file.read_text():
            await asyncio.sleep(next(pause_s))
    return int(file.read_text().splitlines()[0])
