"""Running one call, whatever its source does: with a limit on the time, and always an answer."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import structlog

from vigil.errors import InvalidInput, Unavailable
from vigil.observe import metrics
from vigil.runtime import Context
from vigil.texts import excerpt

from ..config import ExecutorLimits
from .progress import ProgressReporter
from .source import Call, ToolOutput, ToolSource

log = structlog.get_logger("vigil.executor")

AWAY: Final = "{tool} can't be reached now ({reason}); it did not run"
TOO_LONG: Final = "{tool} did not end within {seconds:g} s and was ended"
FAULT: Final = "something went wrong while {tool} ran; it may have been done. It was logged."


class Running:
    """The calls whose source is at work."""

    def __init__(self, context: Context, limits: ExecutorLimits) -> None:
        self._clock = context.clock
        self._send = context.bus.send
        self._counts = context.metrics
        self._limits = limits
        self._count = 0

    def __len__(self) -> int:
        return self._count

    async def run(self, source: ToolSource, call: Call) -> ToolOutput:
        """Run a call, this once; return what came of it. Raises only when cancelled."""
        self._count += 1
        begun_s = self._clock.monotonic()
        reporter = ProgressReporter(self._send, call)
        try:
            output = await self._output(
                source, msgspec.structs.replace(call, on_progress=reporter.take)
            )
        finally:
            self._count -= 1
            self._counts.observe(
                metrics.EXECUTOR_SECONDS, self._clock.monotonic() - begun_s, call.tool.name
            )
            await reporter.end()
        content = excerpt.in_bytes(output.content, call.tool.output_bytes_max)
        return msgspec.structs.replace(output, content=content)

    async def _output(self, source: ToolSource, call: Call) -> ToolOutput:
        tool = call.tool
        try:
            async with asyncio.timeout(tool.timeout_s + self._limits.run_margin_s):
                return await self._attempts(source, call)
        except InvalidInput as error:
            return ToolOutput(content=f"{error.field}: {error.reason}", is_error=True)
        except Unavailable as error:
            return ToolOutput(content=AWAY.format(tool=tool.name, reason=error), is_error=True)
        except TimeoutError:
            return ToolOutput(
                content=TOO_LONG.format(tool=tool.name, seconds=tool.timeout_s), is_error=True
            )
        except Exception as error:
            # A bug of a source must neither end the service nor leave the session waiting.
            log.error(
                "source failed",
                action="executor.source",
                tool=tool.name,
                effect=call.id,
                exc_info=error,
            )
            return ToolOutput(content=FAULT.format(tool=tool.name), is_error=True)

    async def _attempts(self, source: ToolSource, call: Call) -> ToolOutput:
        """Try again what surely did not run. Raises: Unavailable, after the last attempt."""
        for _ in range(self._limits.attempts_max - 1):
            try:
                return await source.run(call)
            except Unavailable as error:
                log.info(
                    "not run", action="executor.not_run", tool=call.tool.name, error=str(error)
                )
            await asyncio.sleep(self._limits.attempts_pause_s)
        return await source.run(call)
