"""The kind `slack`: an app of Slack both ways, by Web API and Socket Mode (docs/slack.md, ADR 59).

What decides is pure and apart: `happenings` (what came), `composition` (what is sent). Around it
are `wire`, `sender` and `listener`.
"""
