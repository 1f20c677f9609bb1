"""`python -m services.dark_is_the_night`."""

from services.dark_is_the_night.game import GAME
from services.kit.server import main

if __name__ == "__main__":
    main(GAME)
