"""/api/models: who may be asked to think on this machine, and who does. For admins."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Final, Literal

import structlog
from fastapi import Depends, Response

from vigil.edits.model_choice import ModelChosen, kept_keys, plan_of, tried_in_copy, write
from vigil.errors import InvalidInput
from vigil.local import model_servers
from vigil.local.model_servers import ModelServer
from vigil.settings import config
from vigil.settings.models.trial import IN_PROSE, TOOLS

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..written_settings import written

log = structlog.get_logger("vigil.gateway")

ChosenProvider = Literal["anthropic", "openai", "local"]
_ONE_AT_A_TIME: Final = asyncio.Lock()


class LocalServerView(Answer, frozen=True, kw_only=True):
    """A server of models that answers on the gateway's machine."""

    name: str
    url: str
    models: tuple[str, ...]


class ModelsView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What may be chosen."""

    kept: tuple[str, ...]
    """Providers whose keys the home has."""
    servers: tuple[LocalServerView, ...]


class ModelWanted(RequestBody, frozen=True, kw_only=True):
    """Who is to think."""

    provider: ChosenProvider
    model: str = ""
    """Its id there; empty: Anthropic's usual one."""
    key: str = ""
    """Of the provider; empty: the one that is kept."""
    url: str = ""
    """`local`: of a server that `GET /api/models` found."""


class ModelInUse(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """Who thinks from now on."""

    name: str
    latency_ms: float
    """Until the answer of one token was there."""
    is_now: bool
    """False: from the next start on, since limits in `vigil.toml` changed, too."""
    remark: str
    """What it can't do; empty: nothing is to be said."""


async def get_models(edge: Shared, _: Admin) -> Response:
    """Look which servers of models answer on the gateway's machine, and which keys there are."""
    servers = await asyncio.to_thread(model_servers.found, model_servers.USUAL)
    views = tuple(LocalServerView(name=one.name, url=one.url, models=one.models) for one in servers)
    return Json(ModelsView(kept=kept_keys(edge.context.settings.home), servers=views))


async def choose_model(
    edge: Shared, caller: Admin, wanted: Annotated[ModelWanted, Depends(body_of(ModelWanted))]
) -> Response:
    """Have a model think, if it answers; it's asked for a token first, and nothing is written if it
    doesn't. The key is kept in the home, all else in `vigil.toml`."""
    running = edge.context.settings
    async with _ONE_AT_A_TIME:  # not `WRITING`: others needn't wait for the model's answer
        made = await written(running, lambda: _chosen(running, wanted))
    log.info("model chosen", action="gateway.model", by=caller.user, model=made.name)
    return Json(made)


def _chosen(running: config.Settings, wanted: ModelWanted) -> ModelInUse:
    settings = config.load(os.environ, home=running.home)
    server = _server_at(wanted.url) if wanted.provider == "local" else None
    chosen = ModelChosen(provider=wanted.provider, model=wanted.model, key=wanted.key)
    plan = plan_of(chosen, settings.config, server, kept_keys(settings.home))
    found = tried_in_copy(settings, plan, chosen.key)
    if found.error:
        field = "key" if plan.key_of else "model"
        raise InvalidInput(field, f"{plan.name} gives no answer: {found.error}")
    write(settings, plan, chosen.key)
    after = config.load(os.environ, home=running.home)
    return ModelInUse(
        name=plan.name,
        latency_ms=found.latency_ms or 0.0,
        is_now=after.config.caps_digest == running.config.caps_digest,
        remark=f"it {IN_PROSE}" if TOOLS in found.lacks else "",
    )


def _server_at(url: str) -> ModelServer:
    """Return the server of this machine that has that URL. Raises: Problem, 404: none that answers
    has it; an admin's browser leads nobody elsewhere."""
    for one in model_servers.found(model_servers.USUAL):
        if one.url == url:
            return one
    raise Problem(404, "no server of models answers there on this machine", field="url")


_M: Final = "/api/models"
ENDPOINTS: Final = (
    Endpoint("GET", _M, get_models, {200: ModelsView}, (403,)),
    Endpoint(
        "PUT",
        f"{_M}/main",
        choose_model,
        {200: ModelInUse},
        (403, 404, 409, 413, 422, 503),
        ModelWanted,
    ),
)
