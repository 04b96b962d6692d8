"""The edge: HTTP, sockets, pages.

uvicorn imports its command line, and what starts processes: 9 ms of a start (uvicorn 0.54). Of it
the server and its protocols are used.
"""

from vigil.imports import lean as lean  # before anything imports structlog
from vigil.imports.packages import import_sparingly

import_sparingly("uvicorn")
