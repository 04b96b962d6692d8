"""Signals: the log, told at the level of what happened (SPEC C-4). Pure.

`kinds` is the table: a kind, what it means, which function tells it. Those functions are in
`conversations`, `children` (branches and workers), `board` (requests and jobs) and `memories`;
`draft` collects what they tell of one record. `sources` are the streams that are told. The cortex
runs the projector, the gateway hands signals on.
"""
