#!/usr/bin/env bash
# `mkdocs build --strict --quiet` passes a site with a broken link, which `mkdocs build --strict` refuses.
#
# `--quiet` is documented as silencing warnings, `--strict` as aborting the build on any. One would expect a build that says
# less and is as strict (the guess before it was run: the same exit code, and nothing on the terminal).
#
# Seen (2026-11-29, mkdocs 1.6.1, CPython 3.11): `--quiet` sets the level of the logger, so that warnings end there and
# never come to the handler by which `--strict` counts them: exit code 0, and the site is written. A pipeline that
# is to be quiet checks nothing.
set -euo pipefail
version=1.6.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "mkdocs==$version"
mkdir docs
printf '# Home\n\n[lost](nowhere.md)\n' > docs/index.md
printf 'site_name: Example\n' > mkdocs.yml
echo "mkdocs $version"
loud=0 quiet=0
venv/bin/mkdocs build --strict --site-dir loud || loud=$?
venv/bin/mkdocs build --strict --quiet --site-dir quiet || quiet=$?
echo "--strict: exit code $loud; --strict --quiet: exit code $quiet, index.html $([ -e quiet/index.html ] && echo written || echo missing)"
[ "$loud" -ne 0 ] && [ "$quiet" -eq 0 ] && [ -e quiet/index.html ]
