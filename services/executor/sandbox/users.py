"""Whom commands run as, when the executor is root.

Root's processes are exempt from the limit on their number, and own everything. So each workspace
gets a number of its own, that of no account. Anybody else can't choose, and stays who they are.

Source: systemd's UIDS-GIDS, the range that it sets apart for users that are made up as needed.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from vigil.subjects import Scope

FIRST: Final = 61184
LAST: Final = 65519
ROOT_TRIES_AS: Final = LAST


def user_of(scope: Scope) -> int | None:
    """Return whom the commands of a workspace run as; None: whom the executor runs as.

    Two may have the same: their boxes hold them apart, the number only counts their processes.
    """
    return None if os.geteuid() != 0 else number_of(scope)


def number_of(scope: Scope) -> int:
    """Return the number of a scope's user; always the same.

    >>> FIRST <= number_of(Scope("vigil", "ann")) <= LAST
    True
    """
    digest = hashlib.sha256(f"{scope.agent}:{scope.owner}".encode()).digest()
    return FIRST + int.from_bytes(digest[:4]) % (LAST - FIRST + 1)
