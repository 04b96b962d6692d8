"""Evals: stories with expectations, played against a model in a home of their own (ADR 71).

A story says what a person does, when, and what comes from outside, and what must hold after each
step. `story` and `files` are the form, `judged` the verdict, both pure; `home` has the services
run in one that is thrown away, and `stage` moves their clock.
"""
