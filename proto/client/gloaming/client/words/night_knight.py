"""Night Knight in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gloaming.client.words.common import a, listed, word
from gloaming.night_knight.v1 import night_knight_pb2 as pb


def event(happened: pb.Event, names: Sequence[str]) -> str:
    """An event in a sentence or two."""
    match happened.WhichOneof("kind"):
        case "round_started":
            started = happened.round_started
            piles = listed(f"{name} {size}" for name, size in zip(names, started.pile_sizes, strict=False))
            return f"Round {started.round}. Cards left: {piles}."
        case "peeked":
            return f"{names[happened.peeked.seat]} peeks, and is out for the round."
        case "cards_revealed":
            cards = happened.cards_revealed.cards
            return f"Revealed: {_cards(cards, names)}." if any(card.HasField("card") for card in cards) else "The cards are revealed."
        case "own_card_shown":
            return f"All cards: {_cards(happened.own_card_shown.cards, names)}."
        case "reacted":
            return _reacted(happened.reacted, names)
        case "round_resolved":
            results = happened.round_resolved.results
            right = listed((names[result.seat] for result in results if result.right), "nobody")
            wrong = [f"{names[result.seat]} ({result.rule})" for result in results if not result.right]
            return f"Round {happened.round_resolved.round}: {right} did right{f'; wrong: {listed(wrong)}' if wrong else ''}."
        case _:
            return ""


def move(done: pb.Move, names: Sequence[str]) -> str:
    """A move in a few words."""
    return "peek at the own card" if done.WhichOneof("kind") == "peek" else action(done.react, names)


def action(done: pb.React | pb.Reaction, names: Sequence[str]) -> str:
    """A reaction in a few words."""
    match done.action:
        case pb.React.THROW:
            return f"throw at {names[done.target]}"
        case pb.React.SHIELD:
            return "hold a pillow up"
        case pb.React.SLEEP:
            return "sleep on a pillow"
        case pb.React.TOUCH:
            return "touch a pillow"
        case _:
            return "hands off"


def card(kind: pb.Card.Kind) -> str:
    """A card's name."""
    return word(pb.Card.Kind, kind)


def _cards(cards: Iterable[pb.Card], names: Sequence[str]) -> str:
    return listed(f"{names[each.seat]} has {a(card(each.card)) if each.HasField('card') else 'a hidden card'}" for each in cards)


def _reacted(reaction: pb.Reaction, names: Sequence[str]) -> str:
    match reaction.action:
        case pb.React.THROW:
            did = f"throws a pillow at {names[reaction.target]}"
        case pb.React.SHIELD:
            did = "holds a pillow up"
        case pb.React.SLEEP:
            did = "sleeps on a pillow"
        case pb.React.TOUCH:
            did = "touches a pillow"
        case _:
            did = "keeps hands off"
    evidence = reaction.evidence
    given = f" less {evidence.compensation_ms} for the line" if evidence.compensation_ms else ""
    late = ", too late" if reaction.verdict == pb.Reaction.TOO_LATE else ""
    return f"{names[reaction.seat]} {did} after {evidence.received_ms} ms{given}{late}."
