"""Night Clan's rules, one after the other. In decks, hands and boards T, M, R, D, N are the kinds; on a board `0D` is seat 0's Daughter."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.night_clan import rules
from services.night_clan.rules import (
    CAPACITY,
    LOCATIONS,
    Card,
    CardPlayed,
    CardRelocated,
    CardsDrawn,
    CardView,
    Effect,
    Event,
    HandKept,
    HandShown,
    Keep,
    Kind,
    Location,
    LocationScored,
    Move,
    Mulligan,
    Options,
    Phase,
    Play,
    Reason,
    Refusal,
    Relocate,
    State,
    Step,
    Variant,
)

T = TypeVar("T")

TROLL, MISTLETOE, RICHES, DAUGHTER, NIGHT_WATCH = Kind
LAMP_SHOP, CHURCH, LIBRARY, OLD_CASTLE, TOWER, PALACE, BAR, BLACK_FOREST = Location

KINDS = dict(zip("TMRDN", Kind, strict=True))


def cards(letters: str) -> tuple[Kind, ...]:
    return tuple(KINDS[letter] for letter in letters)


class Scripted:
    """A chance whose streams begin with the cards given; the rest of the deck follows in its usual order."""

    def __init__(self, **streams: str) -> None:
        self.streams = {name.replace("_", "/"): cards(top) for name, top in streams.items()}
        self.labels: list[str] = []

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        self.labels.append(label)
        top = self.streams.get(label, ())
        rest = list(items)
        return (*(rest.pop(rest.index(card)) for card in top), *rest)  # type: ignore[arg-type]


class NoChance:
    """For moves that draw nothing from chance."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        raise AssertionError(f"nothing is to be shuffled here, yet {label} was")


def position(
    board: dict[Location, str],
    hands: tuple[str, ...],
    decks: tuple[str, ...] = (),
    turn: int = 0,
    plays_left: int = 2,
    variant: Variant = Variant.NIGHT,
) -> State:
    """A position in PLAY. Card ids go up along the board as it is written here."""
    lying: dict[Location, tuple[Card, ...]] = {}
    number = 0
    for location, written in board.items():
        for card in written.split():
            number += 1
            lying[location] = (*lying.get(location, ()), Card(f"c{number}", int(card[0]), KINDS[card[1]]))
    seats = len(hands)
    return State(
        variant=variant,
        phase=Phase.PLAY,
        kept=(True,) * seats,
        mulligans=(0,) * seats,
        hands=tuple(tuple(sorted(cards(hand))) for hand in hands),
        decks=tuple(map(cards, decks or ("",) * seats)),
        board=tuple(lying.get(location, ()) for location in LOCATIONS[seats]),
        turn=turn,
        plays_left=plays_left,
    )


def dealt(chance: Scripted, seats: int = 2, variant: Variant = Variant.NIGHT) -> State:
    return rules.setup(Options(variant), seats, chance).state


def opened(chance: Scripted, seats: int = 2, variant: Variant = Variant.NIGHT) -> State:
    """A match whose seats have all kept."""
    state = dealt(chance, seats, variant)
    for seat in range(seats):
        state = made(state, seat, Keep()).state
    return state


def made(state: State, seat: int, move: Move, chance: rules.Chance | None = None) -> Step:
    result = rules.apply(state, seat, move, chance or NoChance())
    assert isinstance(result, Step), result
    assert move in rules.legal(state, seat)
    return result


def refused(state: State, seat: int, move: Move) -> Reason:
    result = rules.apply(state, seat, move, NoChance())
    assert isinstance(result, Refusal), "the move was to be refused"
    assert move not in rules.legal(state, seat)
    return result.reason


def lying(state: State, location: Location) -> list[str]:
    """Who lies there: `c1 0D`."""
    letters = {kind: letter for letter, kind in KINDS.items()}
    return [f"{card.card_id} {card.owner}{letters[card.kind]}" for card in state.board[location - 1]]


def scored(board: dict[Location, str], seats: int = 2) -> dict[Location, LocationScored]:
    return {result.location: result for result in rules.scoring(position(board, ("",) * seats))}


def church(written: str) -> LocationScored:
    """How a Church with these cards scores."""
    return scored({CHURCH: written})[CHURCH]


# --------------------------------------------------------------------- setup


@pytest.mark.rule("NC-01")
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_everybody_owns_thirteen_cards(seats: int) -> None:
    state = dealt(Scripted(), seats)
    for hand, deck in zip(state.hands, state.decks, strict=True):
        assert Counter(hand + deck) == {TROLL: 1, MISTLETOE: 1, RICHES: 2, DAUGHTER: 7, NIGHT_WATCH: 2}


@pytest.mark.rule("NC-02")
@pytest.mark.parametrize(
    ("seats", "capacities"),
    [
        (2, {LAMP_SHOP: 5, CHURCH: 6, LIBRARY: 7, OLD_CASTLE: 8}),
        (3, {LAMP_SHOP: 5, CHURCH: 6, LIBRARY: 7, OLD_CASTLE: 8, TOWER: 6, PALACE: 7}),
        (4, {LAMP_SHOP: 5, CHURCH: 6, LIBRARY: 7, OLD_CASTLE: 8, TOWER: 6, PALACE: 7, BAR: 5, BLACK_FOREST: 8}),
    ],
)
def test_locations_and_their_capacities_make_thirteen_spaces_a_player(seats: int, capacities: dict[Location, int]) -> None:
    view = rules.view(dealt(Scripted(), seats), None)
    assert {location.location: location.capacity for location in view.locations} == capacities
    assert sum(capacities.values()) == 13 * seats == {2: 26, 3: 39, 4: 52}[seats]


@pytest.mark.rule("NC-02")
def test_a_location_for_more_players_is_not_there() -> None:
    state = position({}, ("NDD", "DDD"))
    assert refused(state, 0, Play(DAUGHTER, TOWER)) == Reason.NO_SUCH_LOCATION


@pytest.mark.rule("NC-03")
def test_each_player_draws_the_top_three_of_a_deck_shuffled_in_its_own_stream() -> None:
    chance = Scripted(deck_0="RDTM", deck_1="DDND")
    step = rules.setup(Options(), 2, chance)
    assert chance.labels == ["deck/0", "deck/1"]
    assert step.state.hands == (cards("TRD"), cards("DDN"))
    assert step.state.decks[0][0] is MISTLETOE
    assert [len(deck) for deck in step.state.decks] == [10, 10]
    assert step.events == (CardsDrawn(0, 3, cards("TRD")), CardsDrawn(1, 3, cards("DDN")))


@pytest.mark.rule("NC-03")
def test_only_the_drawer_is_told_which_cards_were_drawn() -> None:
    event = CardsDrawn(1, 3, cards("TRD"))
    assert rules.redact(event, 1) == event
    assert rules.redact(event, 0) == rules.redact(event, None) == CardsDrawn(1, 3, ())


# ------------------------------------------------------------------ mulligan


@pytest.mark.rule("NC-04")
def test_every_seat_is_asked_in_any_order_and_play_starts_after_the_last_keep() -> None:
    state = dealt(Scripted(), seats=3)
    assert rules.to_move(state) == (0, 1, 2)
    step = made(state, 1, Keep())
    assert step.events == (HandKept(1),)
    assert rules.to_move(step.state) == (0, 2)
    assert refused(step.state, 1, Keep()) == Reason.NOT_YOUR_TURN
    state = made(step.state, 2, Keep()).state
    assert state.phase is Phase.SETUP
    state = made(state, 0, Keep()).state
    assert state.phase is Phase.PLAY
    assert rules.to_move(state) == (0,)


@pytest.mark.rule("NC-04")
@pytest.mark.parametrize("hand", ["DDN", "TMR", "RRN"])
def test_a_mulligan_needs_two_night_watch(hand: str) -> None:
    state = dealt(Scripted(deck_0=hand))
    assert refused(state, 0, Mulligan()) == Reason.HAND_DOES_NOT_QUALIFY
    assert list(rules.legal(state, 0)) == [Keep()]


@pytest.mark.rule("NC-04")
def test_a_mulligan_shows_the_hand_to_all_and_draws_from_the_whole_deck_anew() -> None:
    chance = Scripted(deck_0="NTN", deck_0_1="NTD")
    state = dealt(chance)
    assert list(rules.legal(state, 0)) == [Keep(), Mulligan()]
    step = made(state, 0, Mulligan(), chance)
    assert chance.labels[-1] == "deck/0/1"
    assert step.events == (HandShown(0, cards("TNN")), CardsDrawn(0, 3, cards("TDN")))
    assert rules.redact(step.events[0], 1) == rules.redact(step.events[0], None) == HandShown(0, cards("TNN"))
    assert step.state.hands[0] == cards("TDN")
    assert Counter(step.state.hands[0] + step.state.decks[0]) == Counter(rules.DECK)
    assert step.state.hands[1] == state.hands[1]


@pytest.mark.rule("NC-04")
def test_three_mulligans_in_a_row_each_from_the_next_stream_and_asked_again_after_each() -> None:
    chance = Scripted(deck_1="NND", deck_1_1="NNT", deck_1_2="RNN", deck_1_3="DDD")
    state = dealt(chance)
    for _ in range(3):
        state = made(state, 1, Mulligan(), chance).state
        assert rules.to_move(state) == (0, 1)
    assert chance.labels[2:] == ["deck/1/1", "deck/1/2", "deck/1/3"]
    assert list(rules.legal(state, 1)) == [Keep()]


@pytest.mark.rule("NC-04")
def test_cards_are_played_only_after_the_last_keep_and_hands_kept_only_before() -> None:
    state = dealt(Scripted())
    assert refused(state, 0, Play(TROLL, CHURCH)) == Reason.NOT_IN_PLAY
    assert refused(opened(Scripted()), 0, Keep()) == Reason.NOT_IN_SETUP
    assert refused(opened(Scripted()), 0, Mulligan()) == Reason.NOT_IN_SETUP


# ---------------------------------------------------------------------- turns


@pytest.mark.rule("NC-05")
def test_seat_0_begins_and_play_goes_round_by_ascending_seat() -> None:
    state = opened(Scripted(), seats=3)
    movers = []
    for _ in range(8):
        (seat,) = rules.to_move(state)
        movers.append(seat)
        state = made(state, seat, rules.legal(state, seat)[0]).state
    assert movers == [0, 0, 1, 1, 2, 2, 0, 0]


@pytest.mark.rule("NC-05")
def test_another_seat_cannot_play() -> None:
    state = opened(Scripted(deck_1="DDD"))
    assert refused(state, 1, Play(DAUGHTER, CHURCH)) == Reason.NOT_YOUR_TURN
    assert rules.legal(state, 1) == ()


@pytest.mark.rule("NC-06")
def test_a_turn_is_two_plays_and_then_two_cards_are_drawn() -> None:
    state = opened(Scripted(deck_0="DDTRM"))
    assert state.plays_left == 2
    first = made(state, 0, Play(DAUGHTER, CHURCH))
    assert first.events == (CardPlayed(0, CardView("c1", 0, True, DAUGHTER), CHURCH),)
    assert (first.state.turn, first.state.plays_left, first.state.hands[0]) == (0, 1, cards("TD"))
    second = made(first.state, 0, Play(DAUGHTER, LIBRARY))
    assert second.events == (CardPlayed(0, CardView("c2", 0, True, DAUGHTER), LIBRARY), CardsDrawn(0, 2, cards("MR")))
    assert (second.state.turn, second.state.plays_left, second.state.hands[0]) == (1, 2, cards("TMR"))


@pytest.mark.rule("NC-06")
def test_both_cards_may_go_to_the_same_location() -> None:
    state = opened(Scripted(deck_0="DDT"))
    for _ in range(2):
        state = made(state, 0, Play(DAUGHTER, CHURCH)).state
    assert lying(state, CHURCH) == ["c1 0D", "c2 0D"]


@pytest.mark.rule("NC-06")
def test_only_a_card_in_hand_is_played() -> None:
    assert refused(position({}, ("DDR", "TTT")), 0, Play(TROLL, CHURCH)) == Reason.CARD_NOT_IN_HAND


@pytest.mark.rule("NC-07")
def test_nothing_is_drawn_from_an_empty_deck_and_the_last_turn_plays_one_card() -> None:
    state = position({}, ("DDD", "D"), plays_left=1)
    step = made(state, 0, Play(DAUGHTER, CHURCH))
    assert [type(event) for event in step.events] == [CardPlayed]
    assert (step.state.turn, step.state.plays_left) == (1, 1)


@pytest.mark.rule("NC-07")
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_everybody_has_seven_turns_and_the_board_ends_full(seats: int) -> None:
    state = opened(Scripted(), seats)
    plays: list[int] = []
    while rules.to_move(state):
        (seat,) = rules.to_move(state)
        plays.append(seat)
        state = made(state, seat, rules.legal(state, seat)[0]).state
    six_turns = [seat for seat in range(seats) for _ in range(2)] * 6
    assert plays == six_turns + list(range(seats))
    assert [len(on) for on in state.board] == [CAPACITY[location] for location in LOCATIONS[seats]]
    assert not any(state.hands)
    assert not any(state.decks)


@pytest.mark.rule("NC-08")
def test_a_full_location_takes_no_card() -> None:
    state = position({LAMP_SHOP: "0D 1D 0D 1D 0D"}, ("DDD", "DDD"))
    assert refused(state, 0, Play(DAUGHTER, LAMP_SHOP)) == Reason.LOCATION_FULL


@pytest.mark.rule("NC-08")
def test_a_full_location_takes_no_night_watch_even_to_push_a_card_away() -> None:
    state = position({LAMP_SHOP: "0D 1D 0D 1D 0D"}, ("NDD", "DDD"))
    assert refused(state, 0, Play(NIGHT_WATCH, LAMP_SHOP, Relocate("c2", CHURCH))) == Reason.LOCATION_FULL


@pytest.mark.rule("NC-08")
def test_the_last_space_takes_a_card() -> None:
    state = position({LAMP_SHOP: "0D 1D 0D 1D"}, ("DDD", "DDD"))
    assert lying(made(state, 0, Play(DAUGHTER, LAMP_SHOP)).state, LAMP_SHOP)[-1] == "c5 0D"


@pytest.mark.rule("NC-09")
@pytest.mark.parametrize(
    ("variant", "face_up"),
    [(Variant.NIGHT, {DAUGHTER, NIGHT_WATCH}), (Variant.DAY, {TROLL, MISTLETOE, RICHES, DAUGHTER, NIGHT_WATCH})],
)
def test_troll_mistletoe_and_riches_lie_face_down_at_night_and_nothing_by_day(variant: Variant, face_up: set[Kind]) -> None:
    for kind, letter in zip(Kind, "TMRDN", strict=True):
        state = position({}, (letter * 3, "DDD"), variant=variant)
        (event,) = made(state, 0, Play(kind, CHURCH)).events
        up = kind in face_up
        assert event == CardPlayed(0, CardView("c1", 0, up, kind if up else None), CHURCH)


@pytest.mark.rule("NC-09")
def test_a_match_is_played_at_night_unless_asked_otherwise() -> None:
    assert Options().variant is Variant.NIGHT


# ---------------------------------------------------------------- Night Watch


@pytest.mark.rule("NC-10")
def test_a_night_watch_need_not_move_anything() -> None:
    state = position({CHURCH: "0D 1D"}, ("NDD", "DDD"))
    step = made(state, 0, Play(NIGHT_WATCH, CHURCH))
    assert [type(event) for event in step.events] == [CardPlayed]


@pytest.mark.rule("NC-10")
def test_a_night_watch_pulls_an_own_card_here() -> None:
    state = position({CHURCH: "0D 1D", LIBRARY: "0R 1R"}, ("NDD", "DDD"))
    step = made(state, 0, Play(NIGHT_WATCH, CHURCH, Relocate("c3", CHURCH)))
    assert step.events == (CardPlayed(0, CardView("c5", 0, True, NIGHT_WATCH), CHURCH), CardRelocated(0, "c3", LIBRARY, CHURCH))
    assert lying(step.state, CHURCH) == ["c1 0D", "c2 1D", "c5 0N", "c3 0R"]
    assert lying(step.state, LIBRARY) == ["c4 1R"]


@pytest.mark.rule("NC-10")
def test_a_night_watch_pushes_another_players_card_away() -> None:
    state = position({CHURCH: "0D 1D", LIBRARY: "0R 1R"}, ("NDD", "DDD"))
    step = made(state, 0, Play(NIGHT_WATCH, CHURCH, Relocate("c2", LIBRARY)))
    assert step.events[1:] == (CardRelocated(0, "c2", CHURCH, LIBRARY),)
    assert lying(step.state, CHURCH) == ["c1 0D", "c5 0N"]
    assert lying(step.state, LIBRARY) == ["c3 0R", "c4 1R", "c2 1D"]


@pytest.mark.rule("NC-10")
def test_a_pull_needs_two_free_spaces_because_the_night_watch_takes_its_own_first() -> None:
    one_free = position({LAMP_SHOP: "1D 1D 1D 1D", CHURCH: "0D"}, ("NDD", "DDD"))
    assert refused(one_free, 0, Play(NIGHT_WATCH, LAMP_SHOP, Relocate("c5", LAMP_SHOP))) == Reason.LOCATION_FULL
    two_free = position({LAMP_SHOP: "1D 1D 1D", CHURCH: "0D"}, ("NDD", "DDD"))
    step = made(two_free, 0, Play(NIGHT_WATCH, LAMP_SHOP, Relocate("c4", LAMP_SHOP)))
    assert lying(step.state, LAMP_SHOP) == ["c1 1D", "c2 1D", "c3 1D", "c5 0N", "c4 0D"]


@pytest.mark.rule("NC-10")
def test_a_push_needs_one_free_space_here_and_one_there() -> None:
    state = position({LAMP_SHOP: "1D 1D 1D 1D", CHURCH: "0D 0D 0D 0D 0D 0D", LIBRARY: "0D 0D 0D 0D 0D 0D"}, ("NDD", "DDD"))
    assert refused(state, 0, Play(NIGHT_WATCH, LAMP_SHOP, Relocate("c1", CHURCH))) == Reason.LOCATION_FULL
    step = made(state, 0, Play(NIGHT_WATCH, LAMP_SHOP, Relocate("c1", LIBRARY)))
    assert len(lying(step.state, LIBRARY)) == CAPACITY[LIBRARY]


@pytest.mark.rule("NC-10")
@pytest.mark.parametrize("relocate", [Relocate("c2", CHURCH), Relocate("c1", LIBRARY)], ids=["pull", "push"])
def test_a_face_down_card_that_is_moved_stays_face_down(relocate: Relocate) -> None:
    state = position({CHURCH: "1T", LIBRARY: "0T"}, ("NDD", "DDD"))
    step = made(state, 0, Play(NIGHT_WATCH, CHURCH, relocate))
    for viewer in (0, 1, None):
        seen = {card.card_id: card for location in rules.view(step.state, viewer).locations for card in location.cards}
        assert seen["c1"] == CardView("c1", 1, False, None)
        assert seen["c2"] == CardView("c2", 0, False, None)


@pytest.mark.rule("NC-10")
@pytest.mark.parametrize("relocate", [Relocate("c2", CHURCH), Relocate("c1", LIBRARY)], ids=["pull", "push"])
def test_a_night_watch_that_is_moved_does_nothing_again(relocate: Relocate) -> None:
    state = position({CHURCH: "1N", LIBRARY: "0N"}, ("NDD", "DDD"))
    step = made(state, 0, Play(NIGHT_WATCH, CHURCH, relocate))
    assert [type(event) for event in step.events] == [CardPlayed, CardRelocated]
    assert (step.state.turn, step.state.plays_left) == (0, 1)


@pytest.mark.rule("NC-10")
def test_a_card_played_earlier_in_the_same_turn_can_be_pulled() -> None:
    state = opened(Scripted(deck_0="RND"))
    state = made(state, 0, Play(RICHES, CHURCH)).state
    step = made(state, 0, Play(NIGHT_WATCH, LIBRARY, Relocate("c1", LIBRARY)))
    assert lying(step.state, CHURCH) == []
    assert lying(step.state, LIBRARY) == ["c2 0N", "c1 0R"]


@pytest.mark.rule("NC-10")
@pytest.mark.parametrize(
    ("relocate", "reason"),
    [
        (Relocate("c9", CHURCH), Reason.NO_SUCH_CARD),
        (Relocate("c5", LIBRARY), Reason.NO_SUCH_CARD),  # the Night Watch itself
        (Relocate("no card", CHURCH), Reason.NO_SUCH_CARD),
        (Relocate("c2", PALACE), Reason.NO_SUCH_LOCATION),
        (Relocate("c2", CHURCH), Reason.SAME_LOCATION),
        (Relocate("c3", LIBRARY), Reason.SAME_LOCATION),
        (Relocate("c1", LIBRARY), Reason.OWN_CARD),
        (Relocate("c4", CHURCH), Reason.NOT_YOUR_CARD),
        (Relocate("c3", OLD_CASTLE), Reason.OUT_OF_REACH),
        (Relocate("c4", OLD_CASTLE), Reason.OUT_OF_REACH),
    ],
)
def test_a_night_watch_moves_nothing_else(relocate: Relocate, reason: Reason) -> None:
    state = position({CHURCH: "0D 1D", LIBRARY: "0D 1D"}, ("NDD", "DDD"))
    assert refused(state, 0, Play(NIGHT_WATCH, CHURCH, relocate)) == reason


@pytest.mark.rule("NC-10")
def test_no_other_card_moves_one() -> None:
    state = position({CHURCH: "0D 1D"}, ("NDD", "DDD"))
    assert refused(state, 0, Play(DAUGHTER, CHURCH, Relocate("c2", LIBRARY))) == Reason.NOT_A_NIGHT_WATCH


@pytest.mark.rule("NC-11")
def test_no_view_names_a_face_down_card_not_even_its_owners() -> None:
    state = position({CHURCH: "0T 1M 0R 1D"}, ("DDD", "DDD"))
    for viewer in (0, 1, None):
        view = rules.view(state, viewer)
        (seen,) = (location.cards for location in view.locations if location.location is CHURCH)
        assert [(card.card_id, card.owner, card.kind) for card in seen] == [
            ("c1", 0, None),
            ("c2", 1, None),
            ("c3", 0, None),
            ("c4", 1, DAUGHTER),
        ]


@pytest.mark.rule("NC-11")
def test_no_event_names_a_card_played_face_down_not_even_to_its_owner() -> None:
    (event,) = made(position({}, ("TDD", "DDD")), 0, Play(TROLL, CHURCH)).events
    for viewer in (0, 1, None):
        assert rules.redact(event, viewer) == CardPlayed(0, CardView("c1", 0, False, None), CHURCH)


@pytest.mark.rule("NC-11")
def test_a_viewer_sees_only_the_own_hand_and_the_numbers_of_all() -> None:
    state = position({}, ("DDN", "TMR", "DDD"), decks=("RRT", "DD", ""), turn=1, plays_left=2)
    views = [rules.view(state, viewer) for viewer in (0, 1, 2, None)]
    assert [view.hand for view in views] == [cards("DDN"), cards("TMR"), cards("DDD"), ()]
    for view in views:
        assert (view.hand_sizes, view.deck_sizes, view.plays_left) == ((3, 3, 3), (3, 2, 0), 2)
        assert (view.scoring, view.scores) == ((), ())


# -------------------------------------------------------------------- scoring


def last_play(seats: int) -> tuple[State, Step]:
    """A match played to its last card, each card to the first Location with space: the state before that, and the last step."""
    state = opened(Scripted(), seats)
    while True:
        (seat,) = rules.to_move(state)
        before, step = state, made(state, seat, rules.legal(state, seat)[0])
        if step.state.phase is Phase.FINISHED:
            return before, step
        state = step.state


@pytest.mark.rule("NC-12")
@pytest.mark.parametrize(
    ("seats", "order"),
    [
        (2, [LAMP_SHOP, CHURCH, LIBRARY, OLD_CASTLE]),
        (3, [LAMP_SHOP, CHURCH, TOWER, LIBRARY, PALACE, OLD_CASTLE]),
        (4, [LAMP_SHOP, BAR, CHURCH, TOWER, LIBRARY, PALACE, OLD_CASTLE, BLACK_FOREST]),
    ],
)
def test_the_last_card_starts_scoring_from_the_smallest_capacity_up(seats: int, order: list[Location]) -> None:
    _, step = last_play(seats)
    played, *scorings = step.events
    assert isinstance(played, CardPlayed)
    assert [event.location for event in scorings if isinstance(event, LocationScored)] == order
    assert rules.to_move(step.state) == ()
    view = rules.view(step.state, None)
    assert [location.location for location in view.locations] == order
    assert view.scoring == tuple(scorings)
    assert view.plays_left == 0


@pytest.mark.rule("NC-12")
def test_all_cards_are_turned_up_for_scoring_and_none_before() -> None:
    before, step = last_play(2)
    assert any(card.kind is None for location in rules.view(before, 0).locations for card in location.cards)
    view = rules.view(step.state, None)
    assert all(card.face_up and card.kind for location in view.locations for card in location.cards)
    assert [location.cards for location in view.locations] == [result.cards for result in view.scoring]


@pytest.mark.rule("NC-12")
def test_nothing_moves_after_scoring() -> None:
    _, step = last_play(2)
    for seat in (0, 1):
        for move in (Keep(), Mulligan(), Play(DAUGHTER, CHURCH)):
            assert refused(step.state, seat, move) == Reason.MATCH_FINISHED


@pytest.mark.rule("NC-13")
def test_most_cards_take_the_location_card_whatever_they_are() -> None:
    assert church("0D 1R 1D").taken_by == 1
    assert church("0T 0M 1R").taken_by == 0
    assert church("0T 0D 1R").taken_by == 0  # spoiled, and yet taken


@pytest.mark.rule("NC-13")
def test_a_tie_for_most_cards_discards_the_location_card() -> None:
    assert church("0D 1R 1D 0D").taken_by is None
    assert church("").taken_by is None
    three = scored({CHURCH: "0D 1D 2D 0D 1D", LIBRARY: "0D 0D 1D 2D"}, seats=3)
    assert three[CHURCH].taken_by is None
    assert three[LIBRARY].taken_by == 0


@pytest.mark.rule("NC-14")
@pytest.mark.parametrize("written", ["0T 0R 1D 1N", "0T 1T 1M 0R 1D", "0T 1D 0N", "0T"], ids=["T", "TTM", "no M", "alone"])
def test_more_trolls_than_mistletoe_spoil_everything_there(written: str) -> None:
    result = church(written)
    assert result.effect is Effect.SPOILED
    assert result.points == (0, 0)


@pytest.mark.rule("NC-15")
@pytest.mark.parametrize(
    ("written", "points"),
    [
        ("0T 1M 0R 1D", (0, 2)),  # one each: -2 + 2, 1 + 1
        ("0T 0M 1R 1N", (-1, 1)),
        ("0T 0M 1M 1D", (-1, 2)),  # one Troll, two Mistletoe: both score
        ("0T 1T 0M 1M 0D", (0, -1)),  # two each
    ],
)
def test_no_fewer_mistletoe_than_trolls_let_everything_there_score(written: str, points: tuple[int, int]) -> None:
    result = church(written)
    assert result.effect is Effect.NEGATED
    assert result.points == points


@pytest.mark.rule("NC-16")
def test_mistletoe_without_a_troll_scores_nothing_and_the_rest_does() -> None:
    result = church("0M 0R 1M 1D 1D")
    assert result.effect is Effect.NO_TROLL
    assert result.points == (2, 2)


@pytest.mark.rule("NC-16")
def test_an_empty_location_scores_nothing() -> None:
    assert church("").effect is Effect.NO_TROLL
    assert church("").points == (0, 0)


@pytest.mark.rule("NC-17")
def test_what_each_card_is_worth() -> None:
    assert church("0D").points == (1, 0)
    assert church("0R").points == (2, 0)
    assert church("0N").points == (-1, 0)
    assert church("0T 1M").points == (-2, 1)
    assert church("0D 0D 0N 1R").points == (1, 2)


@pytest.mark.rule("NC-17")
def test_final_points_are_the_sum_over_all_locations() -> None:
    state = position({LAMP_SHOP: "0T 1R", CHURCH: "0R 1N", LIBRARY: "1D 1D 0N", OLD_CASTLE: "0D 0M"}, ("", ""))
    assert rules.view(state, None).scores == (2, 1)


# -------------------------------------------------------------------- outcome


def ranks(board: dict[Location, str], seats: int = 2) -> tuple[int, ...] | None:
    return rules.outcome(position(board, ("",) * seats))


@pytest.mark.rule("NC-18")
def test_most_points_win() -> None:
    assert ranks({LAMP_SHOP: "1R", OLD_CASTLE: "0D"}) == (2, 1)
    assert ranks({CHURCH: "0R 2D", LIBRARY: "1N"}, seats=3) == (1, 3, 2)


@pytest.mark.rule("NC-18")
def test_equal_points_the_highest_total_capacity_of_location_cards_wins() -> None:
    assert ranks({OLD_CASTLE: "0D 0D", LIBRARY: "1R"}) == (1, 2)  # 2 points each; 8 against 7
    assert ranks({OLD_CASTLE: "0R", LIBRARY: "1D", LAMP_SHOP: "1D"}) == (2, 1)  # two cards of 12 beat one of 8


@pytest.mark.rule("NC-18")
def test_equal_points_and_capacity_is_a_draw() -> None:
    assert ranks({CHURCH: "0D 1D"}) == (1, 1)
    # Church 6 and Tower 6, 1 point each; seat 2 has none
    assert ranks({CHURCH: "0D", TOWER: "1D"}, seats=3) == (1, 1, 3)
    assert ranks({CHURCH: "0D", TOWER: "1D", LIBRARY: "2R"}, seats=3) == (2, 2, 1)


@pytest.mark.rule("NC-18")
def test_capacity_does_not_outweigh_points() -> None:
    assert ranks({OLD_CASTLE: "0D", LIBRARY: "0N 0D", LAMP_SHOP: "1R"}) == (2, 1)


@pytest.mark.rule("NC-18")
def test_there_is_no_outcome_before_the_end() -> None:
    before, step = last_play(2)
    assert rules.outcome(dealt(Scripted())) is None
    assert rules.outcome(before) is None
    assert rules.outcome(step.state) is not None


# ------------------------------------------------------------------ ended early


@pytest.mark.parametrize("state", [dealt(Scripted()), position({CHURCH: "0T 1D"}, ("DDD", "DDD"))], ids=["setup", "play"])
def test_a_match_that_ends_early_is_finished_unscored_and_keeps_its_secrets(state: State) -> None:
    ended = rules.end_early(state)
    assert rules.to_move(ended) == ()
    assert rules.outcome(ended) is None
    view = rules.view(ended, 1)
    assert (view.phase, view.plays_left, view.scoring, view.scores) == (Phase.FINISHED, 0, (), ())
    assert view.locations == rules.view(state, 1).locations
    assert refused(ended, 0, Keep()) == Reason.MATCH_FINISHED


def test_moves_and_events_of_different_kinds_are_never_equal() -> None:
    moves: list[Move] = [Keep(), Mulligan(), Play(DAUGHTER, CHURCH)]
    events: list[Event] = [HandKept(0), HandShown(0, ()), CardsDrawn(0, 0, ())]
    assert all((one == other) == (one is other) for group in (moves, events) for one in group for other in group)
