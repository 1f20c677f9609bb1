"""`python -m gloaming.client night_clan` plays a match in the terminal."""

import sys


def main() -> int:
    """Plays, and returns the exit status."""
    try:
        from gloaming.client.terminal import player
    except ImportError as fault:
        if fault.name != "rich":
            raise
        print("The board is drawn with rich: pip install 'gloaming-client[terminal]'", file=sys.stderr)
        return 1
    return player.main(player.arguments().parse_args())


if __name__ == "__main__":
    sys.exit(main())
