"""Backup and restore of an installation: streams, files, projections (SPEC X-9)."""
