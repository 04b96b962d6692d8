"""The last program before a command: it lays down its own rights, then becomes the command.

It runs alone, isolated and without site-packages, inside of bubblewrap even without anything else
of Vigil; so it imports nothing but the standard library and itself.
"""
