"""The client of the Model Context Protocol: tools of other programs, as tools of ours.

What a server says is believed in nothing: not the risk of its tools, not their names, not that they
are today what they were yesterday. A program runs in the sandbox; a URL is judged before anything
connects to it.
"""
