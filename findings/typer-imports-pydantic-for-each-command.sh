#!/usr/bin/env bash
# Since version 0.29 a command written with Typer imports Pydantic whenever it runs, whatever its options are: it checks
# each of them by a model, also one that wasn't given. A program of one plain text argument starts in more than twice the time.
#
# Expected: Pydantic is there for those who annotate options with its types; text, flags and numbers are converted as
#   before, and a start takes what it took (nothing in the signature names Pydantic, and 0.28 didn't depend on it).
# Seen (Python 3.11, typer 0.28.0 and 0.29.2, pydantic 2.13.5, 2026-11-30): with 0.28.0 no module of Pydantic's is loaded;
#   with 0.29.2 41 are, and 0.09 s of CPU become 0.19. `--help` imports none with either. An option without a value is
#   enough: only a flag that was decided (True or False) is let pass; one whose default is None is checked, too, as is
#   `--install-completion`, which each program has.
#
# Exits with 0 as long as that is so.
set -euo pipefail
cd "$(mktemp -d)"
cat > hello.py <<'PY'
import sys
from typing import Optional

import typer


def hello(name: Optional[str] = None) -> None:
    print(sum(one.partition(".")[0] == "pydantic" for one in sys.modules))


typer.run(hello)
PY
loaded() {
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet "typer==$1" pydantic==2.13.5
    "$1/bin/python" hello.py > /dev/null # compiled from now on
    "$1/bin/python" hello.py
}
older=$(loaded 0.28.0)
newer=$(loaded 0.29.2)
for version in 0.28.0 0.29.2; do
    "$version/bin/python" - "$version" <<'PY'
import resource
import subprocess
import sys

command = [sys.executable, "hello.py"]
taken = []
for _ in range(9):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
print(f"typer {sys.argv[1]}: {sorted(taken)[4]:.3f} s of CPU")
PY
done
echo "modules of Pydantic's with 0.28.0: $older; with 0.29.2: $newer"
[ "$older" -eq 0 ] && [ "$newer" -gt 20 ]
