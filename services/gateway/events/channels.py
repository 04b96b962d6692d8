"""POST /channels/{name}: what people write where they are, through the channel's receiver.

There is no token: the receiver knows what proves who sends a request, and whose words it brings. A
message of a person is stored as one that they posted, an event of a system as one of a hook; both
once, whatever comes again under the same id within a day.
"""

from __future__ import annotations

from typing import Final

import structlog
from fastapi import Request, Response

from vigil.attachments import store
from vigil.channels.contract import ChannelRequest, Inbound, NotAuthentic
from vigil.contracts import Attachment
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, check_part
from vigil.teams import may_act, owner_of

from ..access import not_of_team, plain_session
from ..attachments import keep
from ..callers import Shared
from ..door import CHANNELS
from ..http import body
from ..http.decide import check_length
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Accepted
from ..sessions.messages import parent_of
from ..state import replies
from ..state.edge import Edge
from . import endpoint as events
from .cloud_events import of_text
from .entrance import let_in, note_failure, single

log = structlog.get_logger("vigil.gateway")

PATH: Final = f"{CHANNELS}{{name}}"
ID_LENGTH_MAX: Final = 200


async def post_channel(request: Request, edge: Shared, name: str) -> Response:
    """Take in what a channel hears; what proves who sends it is the kind's matter."""
    receiver = edge.receivers.get(name)
    if receiver is None:
        raise Problem(404, "there is no such channel, or it doesn't hear")
    scope = request.scope
    data = await body.read(scope, request.receive, edge.config.body_bytes_max)
    asked = ChannelRequest(headers=single(scope["headers"]), body=data, at=edge.clock.now())
    try:
        heard = await receiver.receive(asked)
    except NotAuthentic as error:
        address = note_failure(edge, scope["client"])
        log.warning("no proof", action="gateway.channel", channel=name, address=address)
        raise Problem(401, "nothing proves that the request is for this channel") from error
    let_in(edge, scope, f"{CHANNELS}{name}", "channel")
    if heard is None:
        return Response(status_code=204)
    return Json(await take(edge, name, heard, parent_of(scope)), 202)


async def take(edge: Edge, channel: str, heard: Inbound, parent: str | None) -> Accepted:
    """Store what a channel heard, once.

    Raises:
        InvalidInput: it names no session that it may be for, or its id was used for something else.
        Problem: 403, 429, 503.
    """
    check_length("id", heard.id, ID_LENGTH_MAX)
    session, source = _session_of(edge, heard), f"channel:{channel}"
    if heard.is_event:
        limits = events.limits_of(edge)
        event = of_text(heard.id, heard.kind, heard.text.encode(), heard.occurred_at, limits)
        return await events.take(edge, session, heard.user, event, source=source, parent=parent)
    hashes, remarks = await _uploaded(edge, heard)
    text = "\n\n".join((heard.text, *remarks))
    reply_to = await _replied(edge, session, heard)

    async def accept(files: tuple[Attachment, ...]) -> Accepted:
        return await edge.intake.accept(
            heard.user,
            session,
            text,
            key=f"{source}:{heard.id}",
            key_field="id",
            channel=channel,
            attachments=files,
            reply_to=reply_to,
            head=heard.mail or heard.chat,
            parent=parent,
        )

    return await keep.accepted(edge, heard.user, session, hashes, accept)


async def _uploaded(edge: Edge, heard: Inbound) -> tuple[list[str], list[str]]:
    """Store the files of a message for a day -> their hashes, and what there is no room for."""
    hashes: list[str] = []
    remarks: list[str] = []
    for about, data in heard.files:
        try:
            await edge.quota.check(heard.user, about)
        except InvalidInput as error:
            # Without its name, which may be by anybody: what stands here counts as theirs.
            remarks.append(f"[attached, not taken: a file ({about.type}): {error.reason}]")
            continue
        await store.upload(edge.bus, heard.user, about, data)
        hashes.append(about.hash)
    return hashes, remarks


async def _replied(edge: Edge, session: SessionKey, heard: Inbound) -> str | None:
    """Return what a message replies to, if that was said there."""
    id_ = heard.reply_to
    try:
        if id_ is None and heard.replied_at is not None:
            id_ = await replies.sent_as(edge.bus, session, heard.replied_mark, heard.replied_at)
        found = await replies.find(edge.bus, session, id_)
    except InvalidInput:
        return None
    return None if found is None else found.id


def _session_of(edge: Edge, heard: Inbound) -> SessionKey:
    """Return where it was said: with a team's agent, in a session of the team.

    Raises:
        InvalidInput: it is no session key, or a session of the cortex itself.
        Problem: 403, the agent is a team's of which who wrote is no member.
    """
    agent = check_part("agentId", heard.agent)
    owner = owner_of(heard.user, agent, edge.teams)
    home = edge.context.settings.config.person_of(heard.user).home_thread
    session = plain_session(SessionKey.of(owner, agent, heard.thread or home))
    if not may_act(heard.user, owner, agent, edge.teams):
        raise not_of_team(agent)
    return session
