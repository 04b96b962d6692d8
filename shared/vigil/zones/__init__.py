"""Time zones: which database of them holds, what a name stands for, and which instant a clock on a
wall in one shows. Nothing else in Vigil asks `zoneinfo` for a zone."""
