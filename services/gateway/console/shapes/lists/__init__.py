"""Lists: where in one a page is, and what of it stands there."""
