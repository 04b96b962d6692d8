"""NumPy, loaded when the first of its functions is used: it takes 0.1 s and 13 MB, and a memory in
which nothing is has nothing to reckon.

Types of arrays are named in annotations and strings only, or they would load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from vigil.imports import LateModule

    np, npt = LateModule("numpy"), LateModule("numpy.typing")

__all__ = ["np", "npt"]
