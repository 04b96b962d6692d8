"""What shows a message on a desktop of this machine.

The desktop answers with the notification's number: then it's shown. What may have been shown isn't
shown again. What the text holds is text: no desktop makes a link or a picture of it.

Source: https://specifications.freedesktop.org/notification-spec/1.2/
"""

from __future__ import annotations

import asyncio
import os
from html import escape
from typing import TYPE_CHECKING, Any, Final

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
from jeepney.io.asyncio import DBusRouter, RouterClosed, open_dbus_connection
from jeepney.wrappers import DBusErrorResponse

from ...contracts import Said
from ..answers import Answer, NotTaken, Taken, Unclear
from .words import not_theirs, shortened

if TYPE_CHECKING:
    from .desktop import Desktop

APP: Final = "Vigil"
DESKTOP: Final = DBusAddress(
    "/org/freedesktop/Notifications",
    bus_name="org.freedesktop.Notifications",
    interface="org.freedesktop.Notifications",
)
BYTES_MAX: Final = 2_000
NORMAL, CRITICAL = 1, 2
"""Urgencies; what is critical stays until somebody takes it away."""
AS_THE_DESKTOP_LIKES: Final = -1
FAILURES: Final = (OSError, EOFError, ValueError, KeyError, RouterClosed, DBusErrorResponse)
"""What the library raises where there is no bus, or one that ends."""


class DesktopSender:
    """One person's desktop. Each try has a connection of its own: desktops come and go."""

    def __init__(self, section: Desktop, console_url: str) -> None:
        self._section = section
        self._console_url = console_url

    def __repr__(self) -> str:
        return f"DesktopSender({self._section.user!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        if (refusal := not_theirs(said, self._section.user)) is not None:
            return refusal
        showing = _Showing(said, self._console_url)
        try:
            async with asyncio.timeout(self._section.timeout_s):
                return await showing.run(self._section.bus)
        except TimeoutError:
            return showing.failed(f"no answer within {self._section.timeout_s:g} s")
        except FAILURES as error:
            return showing.failed(f"no desktop is there: {type(error).__name__}")

    async def close(self) -> None:
        """Nothing: each try has a connection of its own."""


class _Showing:
    """One try, and how far it came."""

    def __init__(self, said: Said, console_url: str) -> None:
        self._said = said
        self._console_url = console_url
        self._is_sent = False

    def failed(self, reason: str) -> Answer:
        return Unclear(reason=reason) if self._is_sent else NotTaken(reason=reason)

    async def run(self, bus: str) -> Answer:
        connection = await open_dbus_connection(bus or _own_bus())
        try:
            async with DBusRouter(connection) as router:
                return await self._shown(router)
        finally:
            await connection.close()

    async def _shown(self, router: DBusRouter) -> Answer:
        asked = new_method_call(DESKTOP, "GetCapabilities")
        reply = await router.send_and_get_reply(asked)
        if (refusal := _refusal(reply)) is not None:
            return refusal
        notice = notice_of(self._said, frozenset(reply.body[0]), self._console_url)
        self._is_sent = True
        reply = await router.send_and_get_reply(
            new_method_call(DESKTOP, "Notify", "susssasa{sv}i", notice)
        )
        return _refusal(reply) or Taken()


def notice_of(said: Said, capabilities: frozenset[str], console_url: str) -> tuple[Any, ...]:
    """Return the arguments of `Notify`.

    Args:
        capabilities: of the desktop.
    """
    text = shortened(said, BYTES_MAX, console_url)
    title, body = (APP, text) if "body" in capabilities else (f"{APP}: {text}", "")
    if "body-markup" in capabilities:
        body = escape(body, quote=False)
    urgency = CRITICAL if said.is_urgent else NORMAL
    return (APP, 0, "", title, body, [], {"urgency": ("y", urgency)}, AS_THE_DESKTOP_LIKES)


def _refusal(reply: Any) -> NotTaken | None:
    """Return what an error means: nothing was shown; None: it is none."""
    if reply.header.message_type is not MessageType.error:
        return None
    name = reply.header.fields.get(HeaderFields.error_name, "an error")
    return NotTaken(reason=f"the desktop says {name}"[:200])


def _own_bus() -> str:
    """Return the bus of whoever runs this, as it's told or where systems have it."""
    return os.environ.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path=/run/user/{os.getuid()}/bus"
