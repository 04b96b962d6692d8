"""Slack's Web API: what an answer of it means. It says `ok`, whatever the status of HTTP."""

from __future__ import annotations

from typing import Any, Final

from ... import __version__
from ...errors import InvalidInput
from ..answers import NotTaken, Unclear
from ..chats.addresses import is_file_of, is_socket_of
from ..chats.calls import CALL_S, CallFailed, in_short, rate_limited, refused, token_refused
from ..chats.fields import text_in
from ..downloads import ELSEWHERE, Downloads
from ..network_api import NetworkApi, NetworkReply, NetworkSocket, SentFile

HEARTBEAT_S: Final = 30.0
TOKEN_ERRORS: Final = frozenset(
    {
        "account_inactive",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "token_expired",
        "token_revoked",
    }
)
IN_TROUBLE: Final = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}
)
"""Of some of them Slack says that the call may have been carried out all the same."""


class SlackApi:
    """The way to Slack with one token."""

    def __init__(self, token: str, api_url: str) -> None:
        self._token = token
        self._api_url = api_url
        self._api = NetworkApi(api_url, f"vigil/{__version__}")
        self._downloads = Downloads()
        self._own = ""

    async def call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Make a call. Raises: CallFailed."""
        reply = await self._api.call(
            "POST",
            f"/{method}",
            body,
            authorization=f"Bearer {self._token}",
            timeout_s=CALL_S,
            is_form=True,  # what only reads takes nothing else
        )
        return _result_of(reply)

    async def own(self) -> str:
        """Return the app's own user. Raises: CallFailed."""
        if not self._own:
            found = text_in(await self.call("auth.test", {}), "user_id")
            if not found:
                raise CallFailed(Unclear(reason="an answer without a user"))
            self._own = found
        return self._own

    async def socket(self) -> NetworkSocket:
        """Open a socket; the token is the app's own. Raises: CallFailed."""
        url = text_in(await self.call("apps.connections.open", {}), "url")
        if not is_socket_of(url, self._api_url):
            raise CallFailed(NotTaken(reason="the socket is to be elsewhere, which isn't followed"))
        return await self._api.socket(url, timeout_s=CALL_S, heartbeat_s=HEARTBEAT_S)

    async def file(self, url: str, bytes_max: int) -> bytes:
        """Fetch a file. Raises: CallFailed, InvalidInput."""
        if not is_file_of(url, self._api_url):
            raise InvalidInput("file", ELSEWHERE)
        try:
            return await self._downloads.get(
                url, bytes_max, headers={"Authorization": f"Bearer {self._token}"}
            )
        except InvalidInput as error:
            if error.reason != ELSEWHERE:
                raise
        except CallFailed as failed:
            if not isinstance(failed.answer, NotTaken) or failed.answer.status not in (401, 403):
                raise
        # Slack sends who may not have a file to a page to log in.
        await self.call("auth.test", {})
        raise InvalidInput("file", "isn't handed out: the app needs the right files:read")

    async def keep(self, file: SentFile) -> str:
        """Have Slack keep a file, which is shown nowhere yet -> its id. Raises: CallFailed."""
        asked = {"filename": file.name, "length": len(file.data)}
        answer = await self.call("files.getUploadURLExternal", asked)
        url, id_ = text_in(answer, "upload_url"), text_in(answer, "file_id")
        if not (id_ and is_file_of(url, self._api_url)):
            raise CallFailed(NotTaken(reason="a file is to be sent elsewhere, which isn't done"))
        reply = await self._api.upload(url, file, timeout_s=CALL_S)
        if reply.status != 200:
            raise refused(reply.status, "a file isn't kept")
        return id_

    async def close(self) -> None:
        await self._downloads.close()
        await self._api.close()


def _result_of(reply: NetworkReply) -> dict[str, Any]:
    data = reply.data
    if reply.status == 429:
        raise rate_limited(reply.headers.get("retry-after"))
    if not isinstance(data, dict) or reply.status != 200:
        if reply.status == 200:
            raise CallFailed(Unclear(reason="no whole answer"))
        raise refused(reply.status, text_in(data, "error"))
    if data.get("ok") is True:
        return data
    error = text_in(data, "error")
    if error in TOKEN_ERRORS:
        raise token_refused(in_short(error))
    if error == "ratelimited":
        raise rate_limited(reply.headers.get("retry-after"))
    if error in IN_TROUBLE:
        raise CallFailed(Unclear(reason=in_short(error)))
    raise CallFailed(NotTaken(reason=in_short(error) or "refused", is_final=True))
