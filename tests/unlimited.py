"""Settings of a gateway that a crowd at one address may ask as much as it likes: what most tests and the bench are."""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS: Mapping[str, str] = dict.fromkeys(
    (
        "limit_sign_ins",
        "limit_making",
        "limit_making_address",
        "limit_rooms",
        "limit_rooms_address",
        "limit_sockets",
        "limit_sockets_address",
        "limit_moves",
        "most_live_matches",
    ),
    "0",
)
ENVIRONMENT: Mapping[str, str] = {f"GLOAMING_{name.upper()}": value for name, value in SETTINGS.items()}
