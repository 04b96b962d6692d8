"""The executor's own tools. A module that is put here is asked for the tools that it declares."""
