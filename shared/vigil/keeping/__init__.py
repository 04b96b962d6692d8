"""Keeping what was told, and getting rid of it: backup and restore, erasing a person.

    reach                        the broker of a home as its admin, whether Vigil runs or not
    backup, archive, snapshots   an installation as one file, and back (SPEC X-9)
    board                        what a restored BOARD lacks, from the turns
    rearm                        has the scheduler make again what a restored TIMERS may lack
    erase, erasure               a person, from the streams; the mark that services heed meanwhile
    workspaces                   the folders in which tools work, and removing a person's
    blocks, residue              what the broker leaves in its files, and the scan for it

Services need `erasure`, `rearm` and `workspaces` only; the rest is the admin's.
"""
