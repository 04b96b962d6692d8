#!/usr/bin/env bash
# What: openapi-python-client, given a valid document of OpenAPI 3.1 in which a field that may be left out is `const: false`.
# Guess before the run: a client whose field is a `Literal[False]`, or a warning that the schema can't be read.
# Seen on 2026-11-30 with openapi-python-client 0.29.1: it writes `if more != Falseand not isinstance(more, Unset):`, so
#   that no module of the client can be imported, and ends with 0 where ruff isn't on the path, as by pipx. A text as const
#   is glued in the same way, and happens to be Python (`'list'and`); a number is with a SyntaxWarning (`3and`).
#   The same value as an `enum` of one is no way round: the schema is left out, with a warning.
# For who publishes such a document: say `type: boolean`, without the const (as docs/openapi.json does).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openapi-python-client==0.29.1 2>/dev/null
# As pipx has it: its own programs aren't on the path.
made_by="$folder/venv/bin/openapi-python-client"
cd "$folder"
# document SCHEMA: a page whose field `more` is that
document() {
  cat <<EOF
{"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
 "paths": {"/pages": {"get": {"operationId": "page", "responses": {"200": {"description": "A page", "content":
   {"application/json": {"schema": {"\$ref": "#/components/schemas/Page"}}}}}}}},
 "components": {"schemas": {"Page": {"type": "object", "properties": {"more": $1}}}}}
EOF
}
# made SCHEMA: whether the client of it is Python
made() {
  document "$1" >document.json
  PATH=/usr/bin:/bin "$made_by" generate --path document.json --output-path client --overwrite >told.log 2>&1 || { echo "refused"; return; }
  if [ ! -e client/shop_client/models/page.py ]; then echo "left out"
  elif python3 -W ignore -m py_compile client/shop_client/models/page.py 2>error.log; then echo "Python"
  else grep -h "Falseand" error.log | sed 's/^ *//'; fi
}
echo "openapi-python-client 0.29.1"
const=$(made '{"const": false}')
text=$(made '{"const": "list"}')
one=$(made '{"enum": [false]}')
plain=$(made '{"type": "boolean"}')
printf 'const: false    %s\nconst: "list"   %s\nenum: [false]   %s\ntype: boolean   %s\n' "$const" "$text" "$one" "$plain"
[ "$const" = "if more != Falseand not isinstance(more, Unset):" ]
[ "$text" = "Python" ]
[ "$one" = "left out" ]
[ "$plain" = "Python" ]
