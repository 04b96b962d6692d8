"""/api/doctor: what `vigil doctor` finds on the gateway's machine without starting a program.

What the other checks of the command are about, services tell by themselves once they run: models,
the sandbox, the embedder. For admins: it names files and what is configured.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import Response

from vigil.checks import Check
from vigil.doctor.glance import glance
from vigil.settings.config import Settings

from ..callers import Admin, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.wire import Answer


class DoctorView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What was found; `ok`: nothing fails."""

    ok: bool
    checks: tuple[Check, ...]


async def get_doctor(edge: Shared, _: Admin) -> Response:
    """Look at the gateway's machine and its configuration. Needs an admin token."""
    checks = await asyncio.to_thread(_glance, edge.context.settings)
    has_failed = any(one.state == "fail" for one in checks)
    return Json(DoctorView(ok=not has_failed, checks=checks))


def _glance(settings: Settings) -> tuple[Check, ...]:
    return tuple(glance(settings))


ENDPOINTS: Final = (Endpoint("GET", "/api/doctor", get_doctor, {200: DoctorView}, (403,)),)
