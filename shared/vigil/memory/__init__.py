"""The memory service as others see it.

`questions` is what it is asked and answers, `client` asks it over the bus, `tools` are the tools
that a model sees. What is stored is in :mod:`vigil.contracts.memories`.
"""
