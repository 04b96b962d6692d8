"""What `vigil.Client` can do with the timetable: /api/cron and /api/slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .kind import PAGE_MAX, KindCalls
from .method_group import MethodGroup, match, query, segment

PATH: Final = "/api/cron"
AUTONOMY: Final = "/api/autonomy"
LINKS: Final = "/api/calendar-links"


class CronCalls(MethodGroup):
    """Base of `vigil.Client`: what recurs, and what became of it (SPEC J-2, J-4)."""

    def cron_rows(self, *, user: str | None = None, all_: bool = False) -> list[dict[str, Any]]:
        """Return the rows of the timetable, by name: one's own, or an admin names whose.

        Args:
            user: whose; an admin may name anybody.
            all_: those that the system keeps up, too.
        """
        return self._rows().listed(user=user, all=all_ or None)

    def cron_row(self, id_: str) -> dict[str, Any]:
        """Return a row with its `history`, its `next_at` and its `revision`."""
        return self._rows().get(id_)

    def make_cron_row(
        self, name: str, prompt: str, *, agent: str = "vigil", **fields: Any
    ) -> dict[str, Any]:
        """Make a row; return it. Raises: ApiError with status 422: it can't be, or there are 100.

        Args:
            name: one line, at most 100 characters, unlike those of the owner's other rows.
            prompt: what is to be done; at most 8,000 characters.
            fields: of POST /api/cron: one of `cron`, `interval_s` (seconds), `at` and `after`
                (the id of a row), and others.
        """
        return self._rows().make(agent=agent, name=name, prompt=prompt, **fields)

    def change_cron_row(
        self, id_: str, *, revision: int | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Change, pause (`is_enabled` false) or resume a row; return it.

        Raises: ApiError with status 412, if it isn't `revision` now.

        Args:
            revision: as it was read. None: whatever is there.
            fields: of PATCH /api/cron/ID.
        """
        return self._object("PATCH", f"{PATH}/{segment(id_)}", fields, headers=match(revision))

    def remove_cron_row(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """Remove a row; return it. Raises: ApiError with status 412, as `change_cron_row`."""
        return self._rows().end(id_, revision=revision)

    def run_cron_row(self, id_: str) -> dict[str, Any]:
        """Run a row at once, without using up a slot. Raises: ApiError with status 409: it runs."""
        return self._object("POST", f"{PATH}/{segment(id_)}/runs")

    def _rows(self) -> KindCalls:
        return KindCalls(self, "rows", PATH)

    def slots(
        self,
        *,
        row: str | None = None,
        state: str | None = None,
        user: str | None = None,
        limit: int = 50,
        before: int = 0,
    ) -> list[dict[str, Any]]:
        """Return what became of the instants at which rows were due, the newest first.

        Args:
            row: only of that row.
            state: only those: ``ran``, ``late``, ``missed`` …
            user: whose; an admin may name anybody.
            limit: more than 500 are read by pages.
            before: a place, `next_before` of the page before; 0: the newest.
        """
        found: list[dict[str, Any]] = []
        wanted = {"row": row, "state": state, "user": user}
        while True:
            more = {"limit": min(limit - len(found), PAGE_MAX), "before": before or None}
            page = self._object("GET", "/api/slots" + query({**wanted, **more}))
            found += page["slots"]
            before = page.get("next_before") or 0
            if not before or len(found) >= limit:
                return found

    def cron_findings(self, *, user: str | None = None) -> list[dict[str, Any]]:
        """Return what is wrong with rows: never run, late, failing, undecided, without an end.

        Args:
            user: whose; an admin may name anybody.
        """
        answer = self._object("GET", "/api/slots/findings" + query({"user": user}))
        found: list[dict[str, Any]] = answer["findings"]
        return found

    def facts(self, *, user: str | None = None) -> list[dict[str, Any]]:
        """Return what rows and hooks told in a closed form: each `source` with its `facts`.

        Args:
            user: whose; an admin may name anybody.
        """
        answer = self._object("GET", "/api/facts" + query({"user": user}))
        found: list[dict[str, Any]] = answer["sources"]
        return found

    def autonomy(self) -> dict[str, Any]:
        """Return how agents keep up by themselves: `settings`, which of them were `changed`, and
        the `cycles` for the caller."""
        return self._object("GET", AUTONOMY)

    def set_autonomy(
        self, values: Mapping[str, Any], *, revision: int | None = None
    ) -> dict[str, Any]:
        """Set how agents keep up, for all, without a restart; only an admin may.

        Raises: ApiError with status 412, if it isn't `revision` now; 422, naming the field.

        Args:
            values: settings of `[cortex]` that begin with `autonomy_`; None: as configured again.
            revision: as it was read. None: whatever is there.
        """
        return self._object("PATCH", AUTONOMY, dict(values), headers=match(revision))

    def cron_calendar(self, *, days: int = 30, user: str | None = None) -> str:
        """Return when rows are due as iCalendar (RFC 5545).

        Args:
            days: 1..366, how far ahead of rows that no rule describes.
            user: whose; an admin may name anybody.
        """
        return str(self.request("GET", "/api/cron.ics" + query({"days": days, "user": user})))

    def calendar_links(self) -> list[dict[str, Any]]:
        """Return the links of one's calendars, the newest first; an admin's, everybody's."""
        found: list[dict[str, Any]] = self._object("GET", LINKS)["links"]
        return found

    def make_calendar_link(self, *, name: str = "") -> dict[str, Any]:
        """Make a link that a calendar program subscribes to; its `path` is told this once.

        Raises: ApiError with status 422: there are 20.
        """
        return self._object("POST", LINKS, {"name": name})

    def end_calendar_link(self, id_: str) -> dict[str, Any]:
        """End a link at once. Raises: ApiError with status 404: there is none."""
        return self._object("DELETE", f"{LINKS}/{segment(id_)}")
