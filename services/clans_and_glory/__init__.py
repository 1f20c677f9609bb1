"""Clans and Glory, for 2 to 4 players."""
