"""Follows the mailboxes of the configuration, each on one replica at a time, by a lease.

What can't work is told in health, and keeps nothing else from working.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from vigil.bus.lease import Lease, Leases
from vigil.errors import Unavailable, VigilError
from vigil.mail.servers import missing_libraries
from vigil.observe.failures import count_failing
from vigil.runtime import Context
from vigil.settings.mailboxes import FACT, MailboxSection
from vigil.subjects import token_of

from ..calendars.book import CalendarBook
from ..calendars.mailed import InvitationReader
from .facts import MailboxFacts
from .log import MailLog

log = structlog.get_logger("vigil.executor")


class MailboxHolder:
    """The mailboxes of one replica.

    Args:
        is_erasing: whether a person is being erased: of them nothing is stored.
        calendars: what invitations are compared with.
    """

    def __init__(
        self, context: Context, is_erasing: Callable[[str], bool], calendars: CalendarBook
    ) -> None:
        self._context = context
        self._is_erasing = is_erasing
        self._calendars = calendars
        config = context.settings.config
        self._leases = Leases(context.bus, context.instance, replicas=config.nats.replicas)
        self._sections = {name: one for name, one in config.mailboxes.items() if one.is_enabled}

    async def run(self) -> None:
        """Follow them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, section in self._sections.items():
                if why := self._problem(section):
                    self._show(name, "unusable", why)
                    continue
                group.create_task(self._stand_by(name, section), name=f"executor-mailbox-{name}")
            await asyncio.Event().wait()

    def _problem(self, section: MailboxSection) -> str:
        """Return why a mailbox can't be followed; empty: nothing is in its way."""
        ports = (section.imap()[1], *([section.smtp()[1]] if section.smtp_host else []))
        if any(port in self._context.bus.broker_ports for port in ports):
            return "its port is the broker's"
        return missing_libraries()

    async def _stand_by(self, name: str, section: MailboxSection) -> None:
        async def follow(lease: Lease) -> None:
            try:
                await lease.held(self._follow(name, section), name=f"executor-mailbox-{name}")
            finally:
                self._clear(name)

        def failed(error: Exception) -> None:
            if isinstance(error, VigilError):
                log.info("follows again", action="executor.mailbox", name=name, error=str(error))
            else:
                log.error("failed", action="executor.mailbox_failed", name=name, exc_info=error)

        await self._leases.whenever_free(f"mailbox.{token_of('mailbox', name)}", follow, failed)

    async def _follow(self, name: str, section: MailboxSection) -> None:
        from vigil.mail.line import MailboxLine, imap_of  # only for mailboxes

        from .follower import MailFollower

        context, home = self._context, self._context.settings.home
        server = imap_of(section.imap(), section, section.folder)
        line = MailboxLine(server, section.access(home), home, context.clock, name)
        facts = MailboxFacts(context, name, section)
        offers = InvitationReader(context, self._calendars, section.scope)

        def begin() -> MailFollower:
            if self._is_erasing(section.user):
                raise Unavailable(f"{section.user} is being erased")
            log_ = MailLog(
                context.bus,
                context.clock,
                section.scope,
                name,
                may_store=lambda: not self._is_erasing(section.user),
            )
            return MailFollower(
                section,
                log_,
                context.clock,
                lambda state: self._show(name, state, ""),
                lambda box: facts.report(box, log_),
                offers.of,
            )

        await line.follow(begin, lambda _, state, why: self._show(name, state, why))

    # ------------------------------------------------------------ health

    def _show(self, name: str, state: str, problem: str) -> None:
        state_view: Mapping[str, Any] = {"state": state, "problem": problem}
        self._context.facts.setdefault(FACT, {})[name] = state_view
        self._count_failing()

    def _clear(self, name: str) -> None:
        self._context.facts.get(FACT, {}).pop(name, None)
        self._count_failing()

    def _count_failing(self) -> None:
        count_failing(self._context, FACT, "mailboxes", self._sections)
