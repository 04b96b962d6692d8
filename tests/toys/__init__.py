"""Additions of one file each, as somebody else would write them; the tests beside them run them."""
