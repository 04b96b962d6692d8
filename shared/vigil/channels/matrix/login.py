"""Logs in with a server of Matrix, once: the device that comes of it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nio import Api

from ...errors import InvalidInput
from ..chats.fields import text_in
from .section import MatrixAccount
from .wire import Homeserver, NoReply, NotReached

DEVICE: Final = "Vigil"
TIMEOUT_S: Final = 60.0


async def token_for(account: MatrixAccount, password: str, home: Path) -> str:
    """Return the access token that a password leads to.

    Raises:
        InvalidInput: the server can't be reached, or refuses it.
    """
    server = Homeserver(account.homeserver, account.ca_file, home)
    request = Api.login(account.user_id, password, DEVICE)
    try:
        reply = await server.ask("", request, timeout_s=TIMEOUT_S)
    except (NotReached, NoReply) as error:
        raise InvalidInput("homeserver", str(error)) from error
    finally:
        await server.close()
    token = text_in(reply.data, "access_token")
    if not reply.is_ok or not token:
        raise InvalidInput("password", f"the server refuses the log-in: {reply.in_words}")
    return token
