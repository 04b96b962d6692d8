"""Standing grants: what one covers, and what none may be (LOOPS L-8, L-10).

One rule, asked in four places: the command line and the gateway check what is given (`check`), the
cortex looks for a grant before it asks a person (`rule`), and the executor asks the same rule again
for the bytes that it is about to run. Pure.
"""
