"""Workspaces: the folders where tools work, how much they hold, whose content is in them."""
