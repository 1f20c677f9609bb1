"""`python -m services.clans_and_glory`."""

from services.clans_and_glory.game import GAME
from services.kit.server import main

if __name__ == "__main__":
    main(GAME)
