"""The results of calls, stored as events of the sessions that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from vigil.attachments import store
from vigil.attachments.quota import Quota
from vigil.attachments.unkept import Unkept
from vigil.contracts import CallTool, ToolResultEvent, decode_event
from vigil.errors import InvalidInput
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.trust.kept import TrustedSources
from vigil.worker import results, turns
from vigil.worker.patience import Patience

from . import work
from .config import ExecutorLimits
from .tools.source import ToolOutput, is_outside

RESULT: Final = "tool_result"


class Answers:
    """Writes and finds results."""

    def __init__(
        self,
        context: Context,
        limits: ExecutorLimits,
        is_erasing: Callable[[str], bool],
        trusted: TrustedSources,
    ) -> None:
        self._trusted = trusted
        self._bus = context.bus
        self._clock = context.clock
        self._limits = limits
        config = context.settings.config.gateway
        self._quota = Quota(context.bus, config.person_attachments_bytes_max)
        self.unkept = Unkept(context.bus, is_erasing)

    async def store(self, key: SessionKey, call: CallTool, output: ToolOutput) -> None:
        """Store the result of a call; a repeat stores the same event, and the first one counts.

        It is tried for as long as anybody may wait for it, because what is lost here can't be
        found out by running the tool again.

        Raises:
            Unavailable: not even then.
            BusError: the broker refused.
        """
        until = call.payload.due_at + timedelta(seconds=self._limits.answer_late_s)
        patience = Patience(
            "executor.answer", self._limits.again, is_over=lambda: self._clock.now() > until
        )
        await patience.run(lambda: self._store(key, call, output))

    async def _store(self, key: SessionKey, call: CallTool, output: ToolOutput) -> None:
        content, files = output.content, []
        for file in output.files:
            try:
                await self._quota.check(key.user, file.about)
            except InvalidInput as error:
                content += f"\n[{file.about.name} is not kept: {error.reason}]"
                continue
            await store.upload(self._bus, key.user, file.about, file.data)
            files.append(file.about)
        event = turns.result_of(
            work.SERVICE,
            key,
            call.id,
            content,
            now=self._clock.now(),
            is_error=output.is_error,
            is_tainted=is_outside(output, key.scope, self._trusted),
            attachments=tuple(files),
            fields=output.fields,
            wanted=output.wanted,
        )
        if not files:
            await results.store(self._bus, key, event)
            return
        place = key.stream, key.in_event(RESULT)
        _, are_kept = await store.named(
            self._bus, key.user, files, place, lambda: results.store(self._bus, key, event)
        )
        if not are_kept:
            self.unkept.wake()

    async def is_there(self, key: SessionKey, call: CallTool, since: int) -> bool:
        """Whether a result is stored.

        Args:
            since: the sequence of the claim, which came before it.
        """
        seq = since
        while (
            found := await self._bus.get_next(key.stream, key.in_event(RESULT), seq)
        ) is not None:
            seq = found.seq + 1
            try:
                event = decode_event(found.data)
            except InvalidInput:
                continue
            if isinstance(event, ToolResultEvent) and event.payload.call_id == call.id:
                return True
        return False
