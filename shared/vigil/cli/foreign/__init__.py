"""Homes of other agents, read by the forms that their documentation has."""
