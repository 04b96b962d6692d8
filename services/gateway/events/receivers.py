"""The channels of the configuration that hear, ready to take requests.

Made at the start, so that one which can't work is found before the first request is.
"""

from __future__ import annotations

from vigil.channels.contract import ChannelContext, Receiver
from vigil.errors import ConfigError, InvalidInput
from vigil.runtime import Context


def load(context: Context) -> dict[str, Receiver]:
    """Make the receiver of every channel that has one.

    Raises:
        ConfigError: naming the channel, the field and the reason.
    """
    found: dict[str, Receiver] = {}
    settings = context.settings
    for name, channel in settings.config.channels.items():
        of = ChannelContext(
            name=name,
            home=settings.home,
            clock=context.clock,
            ports_never=context.bus.broker_ports,
        )
        try:
            receiver = channel.receiver(of)
        except InvalidInput as error:
            raise ConfigError(f"channels.{name}.{error.field}: {error.reason}") from error
        if receiver is not None:
            found[name] = receiver
    return found
