"""structlog, imported without rich, for whoever imports this first.

It imports rich, if that is there, for tracebacks in colours, which we don't print (`logs`). That is
a tenth of a second and 6 MB of each process (structlog 26.1, rich 15).
"""

from __future__ import annotations

from . import import_without

import_without("structlog", "rich")
