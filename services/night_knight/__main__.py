"""`python -m services.night_knight`."""

from services.kit.server import main
from services.night_knight.game import GAME

if __name__ == "__main__":
    main(GAME)
