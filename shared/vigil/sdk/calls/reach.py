"""What `vigil.Client` can do with what leads to people: channels, contacts, calendars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .method_group import MethodGroup, query, segment

TRIAL_TIMEOUT_S: Final = 60.0
PUSH: Final = "/api/push"


class ReachCalls(MethodGroup):
    """Base of `vigil.Client`: how people are met, and what of theirs is looked into."""

    def channels(self) -> list[dict[str, Any]]:
        """Return the channels, and whether each is used at present."""
        found: list[dict[str, Any]] = self._object("GET", "/api/channels")["channels"]
        return found

    def calendars(self) -> list[dict[str, Any]]:
        """Return one's own calendars, and how each is."""
        found: list[dict[str, Any]] = self._object("GET", "/api/calendars")["calendars"]
        return found

    def try_channel(self, name: str) -> dict[str, Any]:
        """Send a test to a channel, once; return its `outcome` and `reason`."""
        path = f"/api/channels/{segment(name)}/trials"
        return self._object("POST", path, timeout_s=TRIAL_TIMEOUT_S)

    def push(self) -> dict[str, Any]:
        """Return the `channel` and the `public_key` of notifications, and one's `browsers`."""
        return self._object("GET", PUSH)

    def subscribe_browser(self, subscription: Mapping[str, Any]) -> dict[str, Any]:
        """Have a browser notified: `endpoint` and `keys`, as it gave them for the key."""
        return self._object("POST", f"{PUSH}/browsers", dict(subscription))

    def unsubscribe_browser(self, id_: str) -> dict[str, Any]:
        """Have a browser notified no more. Raises: ApiError with status 404, there is none."""
        return self._object("DELETE", f"{PUSH}/browsers/{segment(id_)}")

    def contacts(self, wanted: str = "", *, user: str | None = None) -> dict[str, Any]:
        """Return the `sources` of one's contacts, and the `contacts` that a name means; empty: all.

        Args:
            user: whose; as an admin.
        """
        return self._object("GET", "/api/contacts" + query({"q": wanted or None, "user": user}))

    def deliveries(self, *, state: str | None = None) -> list[dict[str, Any]]:
        """Return what is carried over channels, the newest first.

        Args:
            state: only `waiting`, `delivered`, `ambiguous`, `failed` or `dropped`.
        """
        path = "/api/deliveries" + query({"state": state})
        found: list[dict[str, Any]] = self._object("GET", path)["deliveries"]
        return found
