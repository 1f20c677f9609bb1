"""Matches in a terminal, drawn with rich: the extra `terminal`."""
