#!/usr/bin/env bash
# What: shell-gpt (a chat program of the terminal) beside the newest typer, each from its package alone.
# Guess before the run: a fresh install starts; what it imports is among what it declares.
# Seen on 2026-11-28 with shell_gpt 1.5.1 and typer 0.29.2: it doesn't start. It imports click, which it doesn't
#   declare: that came along with typer until typer stopped depending on it. With click beside it, it starts.
# For users of a server that it could talk to: "ModuleNotFoundError: No module named 'click'" is no fault of the server.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@" 2>/dev/null; }
pip shell-gpt==1.5.1 typer==0.29.2
export HOME="$folder" OPENAI_API_KEY=none
echo "shell_gpt 1.5.1, typer 0.29.2"
alone=$("$folder/venv/bin/sgpt" --version 2>&1 </dev/null | tail -1 || true)
echo "alone:      $alone"
pip click==8.3.1
beside=$("$folder/venv/bin/sgpt" --version 2>&1 </dev/null | tail -1 || true)
echo "with click: $beside"
[ "$alone" = "ModuleNotFoundError: No module named 'click'" ]
[[ "$beside" == *1.5.1* ]]
