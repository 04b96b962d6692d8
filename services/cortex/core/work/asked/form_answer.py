"""What a person says to the form of an MCP server, as its fields (elicitation). Pure.

A form is a flat object of texts, numbers, yes or no, and choices (MCP 2026-07-28, Elicitation).
Whoever answers in words fills in the only field there is; several are filled in as JSON.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vigil.contracts import Decision, Tool
from vigil.contracts.tools import ServerQuestion
from vigil.fields import forms

from ...tools import arguments

SEVERAL: Final = "it wants several things: fill them in as JSON, with the verdict 'edit'"


def filled(wanted: ServerQuestion, decision: Decision) -> dict[str, Any] | str:
    """Return what the person filled in; a text: why that is nothing."""
    properties: dict[str, Any] = wanted.form.get("properties", {})
    if decision.verdict == "edit":
        return decision.input or {}
    given = {
        name: field["default"]
        for name, field in properties.items()
        if isinstance(field, dict) and "default" in field
    }
    if decision.verdict != "answer":
        return given
    required = wanted.form.get("required", [])
    names = list(properties) if len(properties) == 1 else list(required)
    if len(names) != 1 or names[0] not in properties:
        return SEVERAL
    return given | {names[0]: forms.read(properties[names[0]], decision.text.strip())}


def problem(wanted: ServerQuestion, tool: Tool, given: dict[str, Any]) -> str | None:
    """Return what doesn't fit the form, with the field's name."""
    if not wanted.form:
        return "there is nothing to fill in" if given else None
    form = msgspec.structs.replace(tool, input_schema=wanted.form, other_names={})
    return arguments.problem(form, given)
