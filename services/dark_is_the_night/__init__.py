"""Dark Is the Night, for 2 players."""
