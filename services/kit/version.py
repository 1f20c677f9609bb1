"""Which release this is: stated once, in pyproject.toml."""

from importlib.metadata import version

VERSION = version("gloaming")
