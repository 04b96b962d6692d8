"""What `vigil doctor` says of the endpoint that readers search with (`[search] url`)."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Final

from ..checks import Check, fail, ok, warn
from ..net.direct import opener
from ..settings.config import Settings
from ..settings.sections import SearchSection
from ..texts.trouble import reason_of

ANSWER_BYTES_MAX: Final = 2 * 1024 * 1024
QUERY: Final = "search?q=vigil&format=json"
WITHOUT: Final = "until then readers find nothing; they open pages only"


def search(settings: Settings) -> Check | None:
    """Whether it answers a search with results in JSON."""
    config = settings.config.search
    if not config.url:
        return None
    if not config.url.startswith(("http://", "https://")):
        return fail(f"{config.url} is no http or https URL", "correct search.url")
    try:
        found = _ask(config)
    except urllib.error.HTTPError as error:
        advice = "list json under its search.formats" if error.code == 403 else WITHOUT
        return fail(f"{config.url} answers with {error.code}", advice)
    except OSError as error:
        return warn(f"{config.url} can't be reached: {reason_of(error)}", WITHOUT)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("results"), list):
        return fail(f"{config.url} answers, but not with results in JSON", "is it SearXNG?")
    return ok(f"{config.url} answers with JSON")


def _ask(config: SearchSection) -> Any:
    """Raises: OSError, ValueError."""
    direct = opener(urllib.request.ProxyHandler({}))  # follows nowhere, as the tool doesn't
    url = f"{config.url.rstrip('/')}/{QUERY}"
    with direct.open(url, timeout=config.timeout_s) as answer:
        return json.loads(answer.read(ANSWER_BYTES_MAX))
