"""What people say into a network's app, as words: an endpoint that understands speech is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vigil.runtime import Context

if TYPE_CHECKING:
    from .transcriber import Transcriber


def transcriber_of(context: Context) -> Transcriber | None:
    """Return what understands speech, if the configuration says so. Raises: ConfigError."""
    section = context.settings.config.speech
    if not section.url:
        return None
    from .transcriber import Transcriber

    return Transcriber(section, context.settings.home, ports_never=tuple(context.bus.broker_ports))
