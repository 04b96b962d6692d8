"""/v1: the agents for programs that know OpenAI's HTTP interface, and nothing of Vigil's.

Such a program sends the whole conversation each time. Only what is new in it is said to the agent:
the conversation that it goes on is found by what was said before (`past`), so the agent has a
memory, tools and a log of it, as of any other. What decides is pure (`request`, `lent`).
"""
