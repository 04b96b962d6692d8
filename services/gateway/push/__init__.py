"""Browsers that are notified: who subscribes with which, and when that ends."""
