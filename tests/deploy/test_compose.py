from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.registry import GAMES
from gateway.settings import GatewaySettings
from services.kit.settings import ServiceSettings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def test_every_game_has_its_process_and_the_gateway_knows_it(services: dict[str, Any]) -> None:
    assert {name: services[name]["command"] for name in GAMES} == {game: [f"services.{game}"] for game in GAMES}
    targets = GatewaySettings(
        services=services["gateway"]["environment"]["GLOAMING_SERVICES"],
        jwks_file=DEPLOY / "compose.yaml",  # any file that is there
        signing_key_file=DEPLOY / "compose.yaml",
    ).services
    assert targets == {game: f"dns:///{game}:50051" for game in GAMES}


def test_only_the_gateway_is_reachable_and_only_it_has_the_private_key(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if "ports" in service] == ["gateway"]
    assert {name for name, service in services.items() if any(volume.startswith("keys:") for volume in service.get("volumes", ()))} == {
        "gateway",
        "keys",
    }


def test_processes_write_nowhere_may_nothing_and_are_waited_for_while_they_drain(services: dict[str, Any]) -> None:
    drain = ServiceSettings.model_fields["drain_seconds"].default
    for name in (*GAMES, "gateway"):
        assert services[name]["read_only"], name
        assert services[name]["cap_drop"] == ["ALL"], name
        assert "user" not in services[name], name  # the image's own, which is not root
        assert int(services[name]["stop_grace_period"].rstrip("s")) > drain, name
