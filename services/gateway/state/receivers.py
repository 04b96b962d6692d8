"""The channels of the configuration that hear, ready to be asked, or to look for themselves.

Made at the start, so that one which can't work is found before the first message is.
"""

from __future__ import annotations

from vigil.channels.contract import ChannelContext, Listener, Receiver
from vigil.errors import ConfigError, InvalidInput
from vigil.runtime import Context


def load(context: Context) -> tuple[dict[str, Receiver], dict[str, Listener]]:
    """Make the receiver of every channel that has one, and the listener.

    Raises:
        ConfigError: naming the channel, the field and the reason.
    """
    receivers: dict[str, Receiver] = {}
    listeners: dict[str, Listener] = {}
    settings = context.settings
    for name, channel in settings.config.channels.items():
        of = ChannelContext(
            name=name,
            home=settings.home,
            clock=context.clock,
            ports_never=context.bus.broker_ports,
            bus=context.bus,
        )
        try:
            receiver, listener = channel.receiver(of), channel.listener(of)
        except InvalidInput as error:
            raise ConfigError(f"channels.{name}.{error.field}: {error.reason}") from error
        if receiver is not None:
            receivers[name] = receiver
        if listener is not None:
            listeners[name] = listener
    return receivers, listeners
