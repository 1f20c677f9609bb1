"""Night Knight, for 3 to 6 players, in real time."""
