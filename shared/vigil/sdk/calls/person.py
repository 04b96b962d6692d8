"""What `vigil.Client` can do with what holds for a person, and where they are signed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from .method_group import MethodGroup, match, segment

PATH: Final = "/api/person"
COST: Final = "/api/cost"
CONSOLE: Final = "/api/console"


class PersonCalls(MethodGroup):
    """Base of `vigil.Client`: one's zone, language, quiet hours, channel, digest hour and pause."""

    def person(self) -> dict[str, Any]:
        """Return what holds for the caller, which of it is their `own`, and its `revision`."""
        return self._object("GET", PATH)

    def cost(self, by: Sequence[str] = ("day",), *, days: int = 7) -> dict[str, Any]:
        """Return what calls of models came to: one's own and one's teams', or with an
        admin token everybody's.

        Args:
            by: what has a line each: `day`, `agent`, `person`, `cause`, `tier`, `model`.
            days: 1..400 days up to today, of your time zone.
        """
        return self._object("GET", f"{COST}?{urlencode({'by': by, 'days': days}, doseq=True)}")

    def tokens_of_all(self) -> list[dict[str, Any]]:
        """Return everybody's tokens that count, without what they are. Needs an admin token."""
        found: list[dict[str, Any]] = self._object("GET", "/api/tokens")["tokens"]
        return found

    def make_token(
        self,
        user: str,
        *,
        name: str = "",
        is_admin: bool = False,
        expires_days: float | None = None,
    ) -> dict[str, Any]:
        """Make a token, which is told once: the `token` of what is returned. Needs an admin token.

        Args:
            user: whom it speaks for.
            expires_days: 0.001..3660 until it ends; None: it is good until it is ended.
        """
        body = {"user": user, "name": name, "is_admin": is_admin}
        if expires_days is not None:
            body["expires_days"] = expires_days
        return self._object("POST", "/api/tokens", body)

    def end_token(self, id_: str) -> dict[str, Any]:
        """End a token, by how its hash begins: 12 digits or more. Needs an admin token.

        Raises: ApiError with status 404, there is none.
        """
        return self._object("DELETE", f"/api/tokens/{segment(id_)}")

    def budget(self) -> dict[str, Any]:
        """Return the caller's own account of today, and the caps as configured."""
        return self._object("GET", "/api/budget")

    def raise_budget(
        self, times: int, *, agent: str = "", is_for_all: bool = False
    ) -> dict[str, Any]:
        """Raise a limit for today, without a restart: the caller's own, or with an admin token an
        agent's or the instance's; return the caller's account.

        Args:
            times: so often what the limit is, is added to it, in all; 0: it's as configured. What
                it comes to is bounded by `budget.raise_max`.
        """
        body = {"times": times, "agent": agent, "is_for_all": is_for_all}
        return self._object("PUT", "/api/budget/raise", body)

    def console_link(self) -> dict[str, Any]:
        """Return the `path` of a link that signs one browser in to the console, as the caller, and
        when it `expires_at`."""
        return self._object("POST", f"{CONSOLE}/links")

    def browsers(self) -> list[dict[str, Any]]:
        """Return the browsers in which the caller is signed in, the newest first."""
        found: list[dict[str, Any]] = self._object("GET", f"{CONSOLE}/browsers")["browsers"]
        return found

    def end_browser(self, id_: str) -> dict[str, Any]:
        """Sign a browser out. Raises: ApiError with status 404, there is none."""
        return self._object("DELETE", f"{CONSOLE}/browsers/{segment(id_)}")

    def set_person(
        self, values: Mapping[str, str | None], *, revision: int | None = None
    ) -> dict[str, Any]:
        """Set what holds for the caller, without a restart; return all of it.

        Raises: ApiError with status 412, if it isn't `revision` now; 422, naming the field.

        Args:
            values: `timezone`, `language`, `quiet_hours`, `channel`, `digest_at`, `pause`; None:
                as configured again.
            revision: as it was read. None: whatever is there.
        """
        headers = match(revision)
        return self._object("PATCH", PATH, dict(values), headers=headers)
