"""One file a page: what it shows, and what its forms do. The table is in :mod:`..site`."""
