"""What holds for the rules of every game, tried on matches played at random; a new game needs no new line here."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
import pytest

from services.kit.chance import Chance
from services.kit.errors import Unreadable
from services.kit.game import Game, Value
from tests import simulator
from tests.harness import IN_REAL_TIME
from tests.simulator import Turn, move_bytes, random_match, seed, tables, viewers

T = TypeVar("T")

MATCHES = 2  # of every set of options with every number of seats
POSITIONS = 60  # of a match, where each is looked at closely; few matches have more
REASON = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def matches(game: Game) -> Iterator[tuple[int, list[Turn]]]:
    """Whole matches: how many sit, and every step."""
    for options, seats in tables(game):
        for number in range(MATCHES):
            yield seats, list(random_match(game, options, seats, number))


def positions(game: Game, options: Value, seats: int, number: int, rng: random.Random) -> list[Turn]:
    """Steps of a random match: all of them, or so many of a long one."""
    turns = list(random_match(game, options, seats, number))
    return turns if len(turns) <= POSITIONS else rng.sample(turns, POSITIONS)


def stored(state: Value) -> bytes:
    return msgspec.msgpack.encode(state)


def test_random_play_ends_with_an_outcome(game: Game) -> None:
    for seats, turns in matches(game):
        *before, last = (turn.state for turn in turns)
        assert all(game.rules.outcome(state) is None for state in before), "an outcome comes with the last move, not before"
        ranks = game.rules.outcome(last)
        assert ranks is not None, "where nobody is to move there is an outcome"
        assert len(ranks) == seats
        counted = [1 + sum(other < rank for other in ranks) for rank in ranks]
        assert list(ranks) == counted or set(ranks) == {2}, "ranks count from 1, equals share a place; where nobody wins all are 2"


def test_exactly_the_seats_to_move_have_legal_moves(game: Game) -> None:
    for seats, turns in matches(game):
        for turn in turns:
            movers = game.rules.to_move(turn.state)
            assert list(movers) == sorted({seat for seat in movers if 0 <= seat < seats})
            assert [seat for seat in range(seats) if game.rules.legal(turn.state, seat)] == list(movers)


def test_legal_is_exactly_what_apply_accepts(game: Game) -> None:
    rng = random.Random(1)
    for options, seats in tables(game):
        pool = simulator.pool(game, options, seats)
        neighbours = simulator.Neighbours(game, pool)
        chance = Chance(seed("legal"))
        for turn in positions(game, options, seats, 0, rng):
            state = turn.state
            legal = {seat: {move_bytes(game, move): move for move in game.rules.legal(state, seat)} for seat in range(seats)}
            there = {name: move for moves in legal.values() for name, move in moves.items()}
            near = [move for start in rng.sample(list(there.values()), min(len(there), 3)) for move in neighbours.of(start)]
            there |= {move_bytes(game, move): move for move in near + rng.sample(pool, min(len(pool), 100))}
            for seat in range(seats):
                assert len(legal[seat]) == len(game.rules.legal(state, seat)), "no move is listed twice"
                for name, move in there.items():
                    result = game.rules.apply(state, seat, move, chance)
                    assert simulator.is_refusal(result) == (name not in legal[seat]), (seat, move, result)


def test_a_refusal_says_why_and_neither_it_nor_a_move_changes_the_state_it_was_judged_on(game: Game) -> None:
    rng = random.Random(2)
    for options, seats in tables(game):
        pool = simulator.pool(game, options, seats, matches=1)
        for turn in positions(game, options, seats, 1, rng):
            before = stored(turn.state)
            for seat in range(seats):
                for move in rng.sample(pool, min(len(pool), 20)):
                    result = game.rules.apply(turn.state, seat, move, Chance(seed("refusal")))
                    if simulator.is_refusal(result):
                        assert REASON.fullmatch(str(result.reason)), "a reason is UPPER_SNAKE"
                        assert 0 < len(result.detail) <= 200, "a detail is a sentence"
            assert stored(turn.state) == before


def test_every_move_and_the_deal_make_events_that_every_viewer_may_be_sent(game: Game) -> None:
    for seats, turns in matches(game):
        for turn in turns:
            assert turn.events, "every step has an event: watchers hear of a commit by its events"
            for value in turn.events:
                for viewer in viewers(seats):
                    message = simulator.event(game, value, viewer)
                    assert message.WhichOneof("kind"), f"{value} has no kind for viewer {viewer}"
                    assert isinstance(message, game.message("Event"))


def test_a_view_can_be_made_of_every_state_for_every_viewer(game: Game) -> None:
    for seats, turns in matches(game):
        for turn in turns:
            for viewer in viewers(seats):
                message = game.codec.view_to_proto(game.rules.view(turn.state, viewer))
                assert isinstance(message, game.message("View"))
                assert message.IsInitialized()


def test_a_state_survives_storage(game: Game) -> None:
    decoder = msgspec.msgpack.Decoder(game.rules.State)
    for seats, turns in matches(game):
        for turn in turns:
            restored = decoder.decode(stored(turn.state))
            assert restored == turn.state
            assert stored(restored) == stored(turn.state)
            assert game.rules.to_move(restored) == game.rules.to_move(turn.state)
            assert game.rules.outcome(restored) == game.rules.outcome(turn.state)
            assert simulator.window(game, restored) == simulator.window(game, turn.state)
            for viewer in viewers(seats):
                assert simulator.view_bytes(game, restored, viewer) == simulator.view_bytes(game, turn.state, viewer)
            for seat in range(seats):
                assert list(game.rules.legal(restored, seat)) == list(game.rules.legal(turn.state, seat))


@pytest.mark.rule("ALL-03")
def test_all_03_the_same_seed_and_moves_give_the_same_match_also_from_storage(game: Game) -> None:
    decoder = msgspec.msgpack.Decoder(game.rules.State)
    for options, seats in tables(game):
        deal, *turns = random_match(game, options, seats, 3)
        step = game.rules.setup(options, seats, Chance(seed(game.id, 3)))
        assert (step.state, tuple(step.events)) == (deal.state, deal.events)
        for turn in turns:
            # As the service does it: the state read back, and the chance begun anew for every move.
            state, chance = decoder.decode(stored(step.state)), Chance(seed(game.id, 3))
            if turn.seat is None:
                step = simulator.window_ends(game, state, chance)
            else:
                step = game.rules.apply(state, turn.seat, turn.move, chance)
            assert (step.state, tuple(step.events)) == (turn.state, turn.events)


class Spied(Chance):
    """Remembers the labels asked for."""

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed)
        self.labels: list[str] = []

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        self.labels.append(label)
        return super().shuffle(label, items)


@pytest.mark.rule("ALL-03")
def test_all_03_every_shuffle_has_a_stream_of_its_own(game: Game) -> None:
    for options, seats in tables(game):
        for number in range(20):
            chance = Spied(seed("labels", number))
            rng = random.Random(number)
            for _ in simulator.match(game, options, seats, chance, rng, simulator.at_random(rng)):
                pass
            assert len(set(chance.labels)) == len(chance.labels), "a stream that is begun twice gives the same order twice"
            assert "seating" not in chance.labels, "that stream is the platform's (ALL-04)"


@pytest.mark.rule("ALL-03")
def test_all_03_another_seed_gives_another_deal(game: Game) -> None:
    for options, seats in tables(game):
        chances = [Spied(seed("deal", number)) for number in range(5)]
        deals = {stored(game.rules.setup(options, seats, chance).state) for chance in chances}
        assert (len(deals) > 1) == bool(chances[0].labels)


def test_a_move_goes_over_the_wire_and_back(game: Game) -> None:
    for options, seats in tables(game):
        for move in simulator.pool(game, options, seats, matches=1):
            message = game.codec.move_to_proto(move)
            again = game.message("Move").FromString(message.SerializeToString())
            assert game.codec.move_from_proto(again) == move
            assert game.codec.move_to_proto(game.codec.move_from_proto(again)) == message


def test_a_move_that_says_nothing_is_unreadable(game: Game) -> None:
    with pytest.raises(Unreadable):
        game.codec.move_from_proto(game.message("Move")())


def test_options_go_over_the_wire_and_back_and_are_filled_in(game: Game) -> None:
    for options in (game.codec.options_from_proto(game.message("Options")()), *simulator.option_sets(game)):
        message = game.codec.options_to_proto(options)
        assert game.codec.options_from_proto(game.message("Options").FromString(message.SerializeToString())) == options
        for field in message.DESCRIPTOR.fields:
            if field.enum_type:
                assert getattr(message, field.name), f"{field.name} has its default filled in"


@pytest.mark.rule("ALL-01")
def test_all_01_where_a_match_ends_early_nobody_is_to_move_and_nobody_may(game: Game) -> None:
    for seats, turns in matches(game):
        for turn in turns[:-1:5]:
            ended = game.rules.end_early(turn.state)
            assert tuple(game.rules.to_move(ended)) == ()
            assert simulator.window(game, ended) is None
            for seat in range(seats):
                assert not game.rules.legal(ended, seat)
                for move in game.rules.legal(turn.state, seat):
                    assert simulator.is_refusal(game.rules.apply(ended, seat, move, Chance(seed("ended"))))
            for viewer in viewers(seats):
                assert simulator.view_bytes(game, ended, viewer)
            assert msgspec.msgpack.decode(stored(ended), type=game.rules.State) == ended


def test_the_game_and_its_proto_say_the_same_of_real_time(game: Game) -> None:
    assert bool(game.real_time) == game.info.real_time


@pytest.mark.parametrize("game", IN_REAL_TIME, ids=lambda game: game.id)
def test_windows_of_time_have_numbers_that_go_up_and_one_is_open_until_the_end(game: Game) -> None:
    for _, turns in matches(game):
        for turn in turns:
            window = simulator.window(game, turn.state)
            assert (window is None) == (game.rules.outcome(turn.state) is not None)
            assert window is None or window.ms >= 0
            before = simulator.window(game, turn.before) if turn.before is not None else None
            if before is None or window is None:
                continue
            # A move may end its window, too; what happens within one leaves it as it is.
            assert window == before if window.number == before.number else window.number > before.number
            assert window.number > before.number or not turn.is_window_end, "a window that ended is open no more"


@pytest.mark.rule("ALL-02")
def test_all_02_the_standard_bot_plays_whole_matches_from_its_seats_view_alone(game: Game) -> None:
    for options, seats in tables(game):
        dice = random.Random(4)

        def choose(state: Value, seat: int, moves: list[Value], dice: random.Random = dice) -> Value:
            view = game.rules.view(state, seat)
            move = game.bot.choose(view, seat, moves, dice)
            assert move in moves
            assert game.rules.view(state, seat) == view
            return move

        *_, last = simulator.match(game, options, seats, Chance(seed("bots")), random.Random(4), choose)
        assert game.rules.outcome(last.state) is not None
