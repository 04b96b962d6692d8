"""What a caller may do with a standing grant (LOOPS L-8): it is of a tool that there is."""

from __future__ import annotations

from vigil.board.kinds.grant import GrantBody
from vigil.contracts import Grant
from vigil.grants.there import check_there
from vigil.subjects import Scope, SessionKey

from ..gone import shown
from ..work.tools import shelves
from .request import KindRequest


class GrantRequest(KindRequest[Grant]):
    """Answers one request about grants."""

    async def _read_for(self, wanted: GrantBody, whose: Scope, user: str) -> None:
        if wanted.session_key:
            shown(self._edge, SessionKey.parse(wanted.session_key))
        if wanted.approval_id is None:  # what was asked for is there
            configured = self._edge.context.settings.config.tool_servers
            check_there(wanted.tool, await shelves(self._edge.bus), configured)
