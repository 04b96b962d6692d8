"""Structured logs with a stable `action` on every line; secrets are masked.

A person at a terminal gets readable lines, everything else gets JSON, always on stderr. What
libraries log by themselves comes in the same form, a failure in one line with its place: what they
write can be set off by others, and nobody can mend their code by a traceback of it.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Final

import structlog

from .trace import add_trace_id

ERROR_LENGTH_MAX: Final = 500
_SECRET: Final = re.compile(
    r"(sk-ant-[A-Za-z0-9_-]{6}|pat_[A-Za-z0-9_-]{4}|SU[A-Z2-7]{6})[A-Za-z0-9_-]+"
    r"|(whsec_[A-Za-z0-9+/]{2})[A-Za-z0-9+/=]+"
)


def mask(text: str) -> str:
    """Hide tokens, API keys, nkey seeds and webhook secrets in `text`.

    >>> mask("key sk-ant-abcdef0123456789")
    'key sk-ant-abcdef…'
    """
    return _SECRET.sub(r"\1\2…", text)


def _mask_values(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = mask(value)
    return event


class _Lossy:
    """A stream that drops what it can't take: no line is worth ending the work that it tells of.

    Where the log is a file on a disk that is full, each line would raise in whoever writes it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


class Lines(logging.Handler):
    """Takes the lines of libraries into our log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text, more = record.getMessage().strip(), {}
            if record.exc_info is not None and (error := record.exc_info[1]) is not None:
                more["error"] = described(error)
            log = structlog.get_logger("vigil.library")
            log.log(record.levelno, text, action="library", logger=record.name, **more)
        except Exception:  # as the standard library has it: a log line must not break what it tells
            self.handleError(record)


def described(error: BaseException) -> str:
    """Return an error in one line: what, and where it was raised.

    >>> try:
    ...     int("x")
    ... except ValueError as error:
    ...     described(error).partition(" (")[0]
    "ValueError: invalid literal for int() with base 10: 'x'"
    """
    text = " ".join(f"{type(error).__name__}: {error}".split())[:ERROR_LENGTH_MAX]
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def configure(*, level: int = logging.INFO, stream: Any = None) -> None:
    """Set up logging for this process; safe to call again."""
    stream = stream or sys.stderr
    is_terminal = stream.isatty()
    stream = _Lossy(stream)
    renderer: Any = (
        # Not the default, which prints local variables: secrets among them.
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if is_terminal
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_trace_id,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _mask_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[Lines()], force=True)
