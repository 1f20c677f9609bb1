"""`python -m services.night_clan`."""

from services.kit.server import main
from services.night_clan.game import GAME

if __name__ == "__main__":
    main(GAME)
