"""`python -m vigil.cli`: the same as `vigil`."""

from . import main

main()
