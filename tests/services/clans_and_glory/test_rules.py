"""Clans and Glory's rules, one after the other. Residents and tables are written as `positions.py` says."""

from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.clans_and_glory import rules
from services.clans_and_glory.rules import (
    FREE,
    RESIDENTS,
    SET_UP,
    SLOTS,
    Color,
    Event,
    FieldScored,
    FieldView,
    HandDealt,
    Options,
    Place,
    Reason,
    Refusal,
    Resident,
    ResidentPlaced,
    ShieldPlaced,
    SlotView,
    State,
    Step,
    Taken,
)
from tests.services.clans_and_glory.positions import A_FREE, B_FREE, LOWER, UPPER, card, cards, numbers, position

T = TypeVar("T")


class InOrder:
    """A chance that leaves a deck as it comes, or turns it round."""

    def __init__(self, backwards: bool = False) -> None:
        self.step = -1 if backwards else 1
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        self.asked.append((label, tuple(items)))
        return tuple(items[:: self.step])


class NoChance:
    """For moves: they draw nothing from chance."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        raise AssertionError(f"nothing is to be shuffled here, yet {label} was")


def dealt(seats: int) -> State:
    return rules.setup(Options(), seats, InOrder()).state


def made(state: State, seat: int, move: Place) -> Step:
    result = rules.apply(state, seat, move, NoChance())
    assert isinstance(result, Step), result
    assert move in rules.legal(state, seat)
    return result


def refused(state: State, seat: int, move: Place) -> Reason:
    result = rules.apply(state, seat, move, NoChance())
    assert isinstance(result, Refusal), "the move was to be refused"
    assert move not in rules.legal(state, seat)
    return result.reason


def slots(state: State, field: int) -> tuple[SlotView, ...]:
    return rules.view(state, None).fields[field].slots


def places(state: State, resident: str, seat: int = 0) -> set[tuple[int, int]]:
    """Where a resident may lie face up: field and slot."""
    return {(move.field, move.slot) for move in rules.legal(state, seat) if move.card == card(resident) and not move.face_down}


# --------------------------------------------------------------------- set-up


@pytest.mark.rule("CG-01")
def test_42_residents_six_strengths_in_each_of_seven_colours() -> None:
    assert len(RESIDENTS) == len(set(RESIDENTS)) == 42
    for color in Color:
        assert [resident.strength for resident in RESIDENTS if resident.color is color] == [3, 4, 5, 6, 7, 8]


@pytest.mark.rule("CG-02")
@pytest.mark.parametrize(("seats", "campfires"), [(2, "*--*"), (3, "*---*"), (4, "*----*")])
def test_fields_stand_in_a_line_with_a_campfire_at_each_end(seats: int, campfires: str) -> None:
    fields = rules.view(dealt(seats), None).fields
    assert [field.campfire for field in fields] == [sign == "*" for sign in campfires]
    assert all(field.shields == () for field in fields)


@pytest.mark.rule("CG-02")
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_everybody_has_five_shields(seats: int) -> None:
    assert rules.view(dealt(seats), None).shields_left == (5,) * seats


@pytest.mark.rule("CG-03")
@pytest.mark.parametrize(
    ("seats", "strongest", "removed", "lying", "hands", "total"),
    [(2, 6, 3, 8, (9, 8), 28), (3, 7, 4, 5, (9, 9, 8), 35), (4, 8, 5, 6, (8, 8, 8, 7), 42)],
)
def test_the_deal(seats: int, strongest: int, removed: int, lying: int, hands: tuple[int, ...], total: int) -> None:
    state = dealt(seats)
    view = rules.view(state, None)
    on_fields = [held for held in state.board if held != FREE]
    everything = [*state.removed, *on_fields, *(number for hand in state.hands for number in hand)]
    assert view.removed_count == len(state.removed) == removed
    assert len(on_fields) == lying
    assert view.hand_sizes == hands
    assert len(everything) == removed + lying + sum(hands) == total
    assert {RESIDENTS[number] for number in everything} == {resident for resident in RESIDENTS if resident.strength <= strongest}


@pytest.mark.rule("CG-03")
@pytest.mark.rule("CG-05")
def test_one_shuffle_deals_the_removed_ones_the_fields_and_the_hands_in_this_order() -> None:
    chance = InOrder()
    step = rules.setup(Options(), 2, chance)
    assert chance.asked == [("deck", tuple(range(28)))]
    state = step.state
    assert state.removed == numbers("R3 O3 Y3")
    fields = [("G3", "B3"), ("P3", "W3"), ("R4", "O4"), ("Y4", "G4")]
    hands = [cards("B4 P4 W4 R5 O5 Y5 G5 B5 P5"), cards("W5 R6 O6 Y6 G6 B6 P6 W6")]
    assert step.events == (
        *(
            ResidentPlaced(None, field, slot, card(lying), False)
            for field in range(4)
            for slot, lying in zip((0, 5), fields[field], strict=True)
        ),
        HandDealt(0, 9, hands[0]),
        HandDealt(1, 8, hands[1]),
    )
    assert [rules.view(state, seat).hand for seat in (0, 1)] == hands


@pytest.mark.rule("CG-03")
@pytest.mark.rule("CG-05")
def test_hands_are_told_by_strength_and_colour_however_they_came() -> None:
    step = rules.setup(Options(), 3, InOrder(backwards=True))
    assert step.state.removed == numbers("G7 B7 P7 W7")[::-1]
    assert [slots(step.state, field)[1].resident for field in range(5)] == list(cards("Y7 O7 R7 W6 P6"))
    assert step.events[-3:] == (
        HandDealt(0, 9, cards("G5 B5 P5 W5 R6 O6 Y6 G6 B6")),
        HandDealt(1, 9, cards("O4 Y4 G4 B4 P4 W4 R5 O5 Y5")),
        HandDealt(2, 8, cards("R3 O3 Y3 G3 B3 P3 W3 R4")),
    )
    assert rules.view(step.state, 1).hand == cards("O4 Y4 G4 B4 P4 W4 R5 O5 Y5")


@pytest.mark.rule("CG-03")
def test_only_the_seat_itself_is_told_its_hand() -> None:
    event = HandDealt(1, 2, cards("R3 O5"))
    assert rules.redact(event, 1) == event
    assert rules.redact(event, 0) == rules.redact(event, None) == HandDealt(1, 2, ())
    state = position("", "", ("R3", "O5"))
    assert [rules.view(state, viewer).hand for viewer in (0, 1, None)] == [cards("R3"), cards("O5"), ()]


@pytest.mark.rule("CG-03")
@pytest.mark.parametrize("seats", [2, 3, 4])
def test_seat_0_begins_and_the_seat_with_the_fewest_cards_is_last_in_turn_order(seats: int) -> None:
    state = dealt(seats)
    movers = []
    for _ in range(seats + 1):
        (seat,) = rules.to_move(state)
        movers.append(seat)
        state = made(state, seat, rules.legal(state, seat)[0]).state
    assert movers == [*range(seats), 0]
    sizes = [len(hand) for hand in dealt(seats).hands]
    assert sizes.index(min(sizes)) == seats - 1
    assert sizes.count(min(sizes)) == 1


@pytest.mark.rule("CG-03")
def test_another_seat_cannot_play() -> None:
    state = dealt(2)
    assert refused(state, 1, Place(card("W5"), 0, 2)) == Reason.NOT_YOUR_TURN
    assert rules.legal(state, 1) == ()


# --------------------------------------------------------------------- spaces


@pytest.mark.rule("CG-04")
@pytest.mark.parametrize(
    ("lying", "near"),
    [
        ((0, 0), {(0, 1), (0, 3)}),  # the end of the row, by the campfire: one neighbour, and the card opposite
        ((0, 3), {(0, 4), (0, 0)}),
        ((0, 1), {(0, 0), (0, 2), (0, 4)}),
        ((0, 2), {(0, 1), (1, 0), (0, 5)}),  # across the border to the next field
        ((1, 3), {(0, 5), (1, 4), (1, 0)}),  # and to the one before
        ((2, 4), {(2, 3), (2, 5), (2, 1)}),
        ((3, 2), {(3, 1), (3, 5)}),
        ((3, 5), {(3, 4), (3, 2)}),
    ],
)
def test_neighbours_are_left_and_right_across_borders_too_and_opposite_is_the_other_row(
    lying: tuple[int, int], near: set[tuple[int, int]]
) -> None:
    # B6 matches R3 in nothing, so it lies anywhere but near it.
    empty = position("", "", ("B6", "O5"))
    space = lying[0] * SLOTS + lying[1]
    state = empty._replace(board=(*empty.board[:space], RESIDENTS.index(card("R3")), *empty.board[space + 1 :]))
    everywhere = {(field, slot) for field in range(4) for slot in range(6)}
    assert places(state, "B6") == everywhere - near - {lying}


@pytest.mark.rule("CG-04")
@pytest.mark.parametrize(("seats", "spaces"), [(2, 24), (3, 30), (4, 36)])
def test_every_field_has_six_spaces(seats: int, spaces: int) -> None:
    fields = rules.view(dealt(seats), None).fields
    assert [len(field.slots) for field in fields] == [6] * len(fields)
    assert sum(len(field.slots) for field in fields) == spaces


@pytest.mark.rule("CG-04")
@pytest.mark.parametrize(("field", "slot"), [(4, 0), (5, 5), (-1, 0), (0, 6), (0, -1), (3, 99)])
def test_a_space_that_is_not_there_takes_nothing(field: int, slot: int) -> None:
    state = position("", "", ("R3", "O5"))
    assert refused(state, 0, Place(card("R3"), field, slot)) == Reason.NO_SUCH_SPACE


@pytest.mark.rule("CG-05")
@pytest.mark.parametrize(("seats", "occupied"), [(2, [0, 5]), (3, [1]), (4, [1])])
def test_set_up_residents_lie_on_the_same_slots_of_each_field_and_touch_no_other(seats: int, occupied: list[int]) -> None:
    state = dealt(seats)
    lying = []
    for field in range(len(state.shields)):
        assert [slot for slot, seen in enumerate(slots(state, field)) if seen.resident] == occupied
        lying += [(slot // 3, field * 3 + slot % 3) for slot in occupied]  # row and column
    for row, column in lying:
        assert not {(row, column - 1), (row, column + 1), (1 - row, column)} & set(lying)


# ------------------------------------------------------------ playing a resident


@pytest.mark.rule("CG-06")
@pytest.mark.parametrize(
    ("upper", "lower", "fits"),
    [
        ("R3 ..", "", True),  # the colour of a neighbour
        (".. .. B5 | ..", "", True),  # the strength of a neighbour
        (".. ..", ".. R6", True),  # the colour of the card opposite
        (".. ..", ".. G5", True),  # its strength
        ("B3 .. G4", ".. R6", True),  # one of three is enough
        ("B3 .. R4", ".. O6", True),
        ("B3 ..", "", False),
        (".. .. G4", "", False),
        ("", ".. O6", False),
        ("B3 .. G4", ".. O6", False),
        ("R3 .. B3", "R4 .. R6", True),
        ("", "R3 .. R6", True),  # nothing near: diagonals do not count
        ("", "B3 .. B6", True),
        (".. .. .. | R5", "", True),
    ],
)
def test_a_resident_matches_a_neighbour_or_the_card_opposite_in_colour_or_strength(upper: str, lower: str, fits: bool) -> None:
    state = position(upper, lower, ("R5 P8 W8", "O7 Y7 G7", "B7 P7 W7", "R8 O8"))
    assert ((0, 1) in places(state, "R5")) == fits
    if fits:
        (event,) = made(state, 0, Place(card("R5"), 0, 1)).events
        assert event == ResidentPlaced(0, 0, 1, card("R5"), False)
    else:
        assert refused(state, 0, Place(card("R5"), 0, 1)) == Reason.DOES_NOT_FIT


@pytest.mark.rule("CG-06")
def test_an_empty_table_takes_any_resident_anywhere() -> None:
    state = position("", "", ("R3 B6", "O5"))
    assert len(places(state, "R3")) == len(places(state, "B6")) == 24


@pytest.mark.rule("CG-06")
def test_a_resident_placed_leaves_the_hand_and_lies_face_up() -> None:
    step = made(position("", "", ("R3 B6", "O5 O6")), 0, Place(card("B6"), 2, 4))
    view = rules.view(step.state, 0)
    assert view.hand == cards("R3")
    assert view.hand_sizes == (1, 2)
    assert view.fields[2].slots[4] == SlotView(card("B6"), False)
    assert rules.to_move(step.state) == (1,)


@pytest.mark.rule("CG-06")
def test_only_a_resident_in_hand_is_played() -> None:
    state = position("", "", ("R3", "O5"))
    for resident in (card("O5"), card("R4"), card("W8"), Resident(Color.RED, 9)):
        assert refused(state, 0, Place(resident, 0, 0)) == Reason.CARD_NOT_IN_HAND


@pytest.mark.rule("CG-06")
def test_a_space_takes_one_card_only() -> None:
    state = position("R4", "##", ("R3", "O5"))
    assert refused(state, 0, Place(card("R3"), 0, 0)) == Reason.SPACE_TAKEN
    assert refused(state, 0, Place(card("R3"), 0, 3)) == Reason.SPACE_TAKEN


# ------------------------------------------------------------------- face down


@pytest.mark.rule("CG-07")
def test_any_resident_goes_face_down_onto_any_free_space_when_none_fits_any() -> None:
    state = position(UPPER, LOWER, ("W5 W6", "W3"))
    assert set(rules.legal(state, 0)) == {
        Place(card(resident), *space, face_down=True, shield=shield)
        for resident in ("W5", "W6")
        for space in (A_FREE, B_FREE)
        for shield in (False, True)
    }


@pytest.mark.rule("CG-07")
def test_nothing_is_played_face_up_when_nothing_fits() -> None:
    state = position(UPPER, LOWER, ("W5 W6", "W3"))
    for space in (A_FREE, B_FREE):
        assert refused(state, 0, Place(card("W5"), *space)) == Reason.MUST_BE_FACE_DOWN


@pytest.mark.rule("CG-07")
def test_nothing_is_played_face_down_while_a_single_card_in_hand_fits_a_single_space() -> None:
    state = position(UPPER, LOWER, ("W3 W5", "W6"))  # W3 goes with Y3 and G3
    for resident in ("W3", "W5"):
        for space in (A_FREE, B_FREE):
            assert refused(state, 0, Place(card(resident), *space, face_down=True)) == Reason.MUST_BE_FACE_UP
    assert refused(state, 0, Place(card("W5"), *B_FREE)) == Reason.DOES_NOT_FIT
    assert set(rules.legal(state, 0)) == {Place(card("W3"), *A_FREE), Place(card("W3"), *A_FREE, shield=True)}


@pytest.mark.rule("CG-07")
def test_the_only_fitting_space_may_be_one_beside_cards_that_lie_face_down() -> None:
    # The last space is near face-down cards alone: as if they were not there, it takes anything.
    state = position(UPPER.replace("G4", "##"), LOWER.replace("P4", "##"), ("W5 W6", "W3"))
    assert places(state, "W5") == places(state, "W6") == {B_FREE}
    assert refused(state, 0, Place(card("W5"), *A_FREE, face_down=True)) == Reason.MUST_BE_FACE_UP
    made(state, 0, Place(card("W5"), *B_FREE))


@pytest.mark.rule("CG-07")
def test_a_space_beside_a_face_down_card_still_has_to_fit_its_other_neighbours() -> None:
    # Where G4 lay there is W4 now, face down; P4 opposite decides, and takes P6 but not W5.
    state = position(UPPER.replace("G4", "##"), LOWER, ("P6 W5", "W3"), beneath="W4")
    assert places(state, "P6") == {B_FREE}
    assert places(state, "W5") == set()


@pytest.mark.rule("CG-07")
@pytest.mark.parametrize("beneath", ["W4", "B5", "W5"])
def test_what_lies_face_down_is_no_neighbour_and_no_opposite_whatever_its_face(beneath: str) -> None:
    neighbour = position(UPPER.replace("G4", "##"), LOWER, ("W5 W6", "W3"), beneath=beneath)
    opposite = position(UPPER, LOWER.replace("P4", "##"), ("W5 W6", "W3"), beneath=beneath)
    for state in (neighbour, opposite):
        assert {move.face_down for move in rules.legal(state, 0)} == {True}


@pytest.mark.rule("CG-07")
def test_a_face_down_card_fills_its_space_for_good() -> None:
    state = made(position(UPPER, LOWER, ("W5 W6", "W3 B6")), 0, Place(card("W6"), *A_FREE, face_down=True)).state
    assert refused(state, 1, Place(card("W3"), *A_FREE)) == Reason.SPACE_TAKEN
    assert {(move.field, move.slot) for move in rules.legal(state, 1)} == {B_FREE}


@pytest.mark.rule("CG-07")
def test_the_face_of_a_face_down_card_is_told_to_its_player_in_the_event_and_to_nobody_else() -> None:
    step = made(position(UPPER, LOWER, ("W5 W6", "W3")), 0, Place(card("W6"), *A_FREE, face_down=True))
    (event,) = step.events
    assert rules.redact(event, 0) == event == ResidentPlaced(0, 1, 0, card("W6"), True)
    assert rules.redact(event, 1) == rules.redact(event, None) == ResidentPlaced(0, 1, 0, None, True)


@pytest.mark.rule("CG-07")
def test_no_view_names_a_face_down_card_not_even_its_players() -> None:
    state = position("## R4", "", ("O5", "W6"), beneath="G5")
    for viewer in (0, 1, None):
        assert rules.view(state, viewer).fields[0].slots[:3] == (SlotView(None, True), SlotView(card("R4"), False), SlotView(None, False))


# --------------------------------------------------------------------- shields


@pytest.mark.rule("CG-08")
def test_a_shield_goes_on_top_of_the_stack_of_the_field_played_on_or_none_does() -> None:
    state = position("", "", ("R3", "O5"), shields={2: (1, 1)})
    step = made(state, 0, Place(card("R3"), 2, 4, shield=True))
    assert step.events == (ResidentPlaced(0, 2, 4, card("R3"), False), ShieldPlaced(0, 2))
    assert step.state.shields == ((), (), (1, 1, 0), ())
    assert rules.view(step.state, None).shields_left == (4, 3)
    assert made(state, 0, Place(card("R3"), 2, 4)).state.shields == state.shields


@pytest.mark.rule("CG-08")
def test_a_shield_may_follow_a_card_played_face_down() -> None:
    state = position(UPPER, LOWER, ("W5 W6", "W3"))
    step = made(state, 0, Place(card("W6"), *A_FREE, face_down=True, shield=True))
    assert step.events[1:] == (ShieldPlaced(0, 1),)
    assert step.state.shields == ((), (0,), (), ())


@pytest.mark.rule("CG-08")
def test_own_shields_are_no_obstacle() -> None:
    state = position("", "", ("R3", "O5"), shields={1: (0, 0)})
    step = made(state, 0, Place(card("R3"), 1, 0, shield=True))
    assert step.state.shields[1] == (0, 0, 0)


@pytest.mark.rule("CG-08")
def test_a_sixth_shield_is_not_there() -> None:
    state = position("", "", ("R3", "O5"), shields={0: (0, 1, 0), 3: (0, 0, 0)})
    assert rules.view(state, None).shields_left == (0, 4)
    assert refused(state, 0, Place(card("R3"), 1, 0, shield=True)) == Reason.NO_SHIELD_LEFT
    assert not any(move.shield for move in rules.legal(state, 0))
    made(state, 0, Place(card("R3"), 1, 0))


@pytest.mark.rule("CG-08")
def test_every_placement_can_be_made_with_and_without_a_shield() -> None:
    moves = rules.legal(position("", "", ("R3", "O5"), shields={0: (0, 0, 0, 0)}), 0)
    assert sum(move.shield for move in moves) == sum(not move.shield for move in moves) == 24


# ------------------------------------------------------------------------- end


def played_out(seats: int) -> list[Step]:
    """A match, each move the first legal one."""
    steps = [rules.setup(Options(), seats, InOrder(backwards=True))]
    while movers := rules.to_move(steps[-1].state):
        steps.append(made(steps[-1].state, movers[0], rules.legal(steps[-1].state, movers[0])[0]))
    return steps


@pytest.mark.rule("CG-09")
@pytest.mark.parametrize(("seats", "rounds"), [(2, 8), (3, 8), (4, 7)])
def test_the_match_ends_with_the_last_card_of_the_seat_dealt_the_fewest_and_the_others_discard_theirs(seats: int, rounds: int) -> None:
    steps = played_out(seats)
    assert len(steps) - 1 == rounds * seats
    before, last = steps[-2], steps[-1]
    assert rules.to_move(before.state) == (seats - 1,)
    assert rules.view(before.state, None).hand_sizes == (1,) * seats
    assert rules.outcome(before.state) is None
    assert rules.outcome(last.state) is not None
    for viewer in (None, *range(seats)):
        view = rules.view(last.state, viewer)
        assert (view.hand, view.hand_sizes) == ((), (0,) * seats)
        assert len(view.scoring) == len(view.fields)


@pytest.mark.rule("CG-09")
def test_the_others_last_card_does_not_end_it() -> None:
    step = made(position("", "", ("R3", "O5 O6")), 0, Place(card("R3"), 0, 0))
    assert rules.to_move(step.state) == (1,)
    assert rules.view(step.state, None).scoring == ()


@pytest.mark.rule("CG-09")
def test_the_turn_that_ends_it_is_finished_shield_included() -> None:
    step = made(position("", "", ("R3", "O5"), turn=1), 1, Place(card("O5"), 3, 0, shield=True))
    placed, shield, *scorings = step.events
    assert (placed, shield) == (ResidentPlaced(1, 3, 0, card("O5"), False), ShieldPlaced(1, 3))
    assert scorings[3] == FieldScored(3, (Taken(1, cards("O5")),), ())
    assert rules.view(step.state, None).scores == (0, 5)


@pytest.mark.rule("CG-09")
def test_nothing_moves_after_the_end() -> None:
    state = played_out(2)[-1].state
    for seat in (0, 1):
        assert rules.legal(state, seat) == ()
        for resident in RESIDENTS:
            assert refused(state, seat, Place(resident, 0, 1)) == Reason.MATCH_FINISHED


@pytest.mark.rule("CG-09")
@pytest.mark.parametrize(("seats", "filled", "spaces"), [(2, 24, 24), (3, 29, 30), (4, 34, 36)])
def test_a_free_space_is_left_for_every_card(seats: int, filled: int, spaces: int) -> None:
    """So nobody is ever without a move: what lies at the end is the set-up and as many cards of each seat as the last one has."""
    this = SET_UP[seats]
    assert this.fields * len(this.occupied) + seats * this.hands[-1] == filled
    assert this.fields * SLOTS == spaces
    last = played_out(seats)[-1].state
    assert sum(held != FREE for held in last.board) == filled


@pytest.mark.rule("CG-09")
@pytest.mark.rule("CG-10")
@pytest.mark.rule("CG-11")
def test_a_full_board_for_two_players() -> None:
    """24 of 24, the last two cards face down, and the score worked out by hand."""
    state = position(UPPER, LOWER, ("W5 W6", "W3"), shields={0: (0, 1), 1: (1, 1), 2: (0, 1, 0, 1, 0)})
    state = made(state, 0, Place(card("W5"), *A_FREE, face_down=True, shield=True)).state
    assert {move.face_down for move in rules.legal(state, 1)} == {True}
    assert refused(state, 1, Place(card("W3"), *B_FREE, face_down=True, shield=True)) == Reason.NO_SHIELD_LEFT
    step = made(state, 1, Place(card("W3"), *B_FREE, face_down=True))
    assert FREE not in step.state.board
    assert step.events == (
        ResidentPlaced(1, 3, 2, card("W3"), True),
        FieldScored(0, (Taken(0, cards("R3 O3 Y3")), Taken(1, cards("R5 O5"))), cards("G6")),
        FieldScored(1, (Taken(1, cards("G3 B3")), Taken(1, cards("B4")), Taken(0, cards("Y5 G5"))), ()),
        FieldScored(
            2, (Taken(0, cards("P3")), Taken(1, cards("R4 O4")), Taken(0, cards("B5 P5")), Taken(1, cards("R6")), Taken(0, ())), ()
        ),
        FieldScored(3, (), cards("Y4 G4 P4 O6 Y6")),
    )
    assert rules.view(step.state, None).scores == (9 + 10 + 3 + 10, 10 + 6 + 4 + 8 + 6)
    assert rules.outcome(step.state) == (2, 1)


# --------------------------------------------------------------------- scoring


def scored(upper: str, lower: str, *shields: int) -> FieldScored:
    """How field 0 scores with these residents and shields, the first placed first."""
    return rules.scoring(position(upper, lower, ("", "", "", ""), shields={0: shields}))[0]


@pytest.mark.rule("CG-10")
def test_shields_from_the_first_placed_on_take_all_residents_of_the_lowest_strength_left() -> None:
    result = scored("B5 R3 G4", "O3 W7 P4", 2, 0, 1)
    assert result == FieldScored(0, (Taken(2, cards("R3 O3")), Taken(0, cards("G4 P4")), Taken(1, cards("B5"))), cards("W7"))


@pytest.mark.rule("CG-10")
def test_three_shields_of_one_player_take_three_strengths() -> None:
    result = scored("R3 B4 G4", "W5 P6", 0, 0, 0)
    assert result == FieldScored(0, (Taken(0, cards("R3")), Taken(0, cards("G4 B4")), Taken(0, cards("W5"))), cards("P6"))


@pytest.mark.rule("CG-10")
def test_of_more_shields_than_strengths_the_last_get_nothing() -> None:
    result = scored("R3 B5 Y3", "", 0, 1, 0, 1)
    assert result == FieldScored(0, (Taken(0, cards("R3 Y3")), Taken(1, cards("B5")), Taken(0, ()), Taken(1, ())), ())


@pytest.mark.rule("CG-10")
def test_residents_left_over_go_to_nobody() -> None:
    assert scored("R3 B5", "Y6", 1) == FieldScored(0, (Taken(1, cards("R3")),), cards("B5 Y6"))
    assert scored("R3 B5", "Y6") == FieldScored(0, (), cards("R3 B5 Y6"))
    assert rules.view(position("R3 B5", "Y6", ("O4", ""), shields={0: (1,)}), None).scores == (0, 3)


@pytest.mark.rule("CG-07")
@pytest.mark.rule("CG-10")
def test_cards_that_lie_face_down_never_score() -> None:
    assert scored("## B5 ##", "", 0, 1) == FieldScored(0, (Taken(0, cards("B5")), Taken(1, ())), ())
    assert scored("##", "##", 0) == FieldScored(0, (Taken(0, ()),), ())


@pytest.mark.rule("CG-10")
def test_a_field_without_residents_or_shields_scores_nothing() -> None:
    assert scored("", "", 3) == FieldScored(0, (Taken(3, ()),), ())
    assert scored("", "") == FieldScored(0, (), ())


@pytest.mark.rule("CG-10")
def test_a_last_weaker_resident_moves_every_shield_down_a_strength() -> None:
    """The rulebook's first tip: of 4 and 6, two shields get both; a 3 leaves the 6 to nobody."""
    assert scored("R4 B6", "", 0, 1) == FieldScored(0, (Taken(0, cards("R4")), Taken(1, cards("B6"))), ())
    assert scored("R4 B6 W3", "", 0, 1) == FieldScored(0, (Taken(0, cards("W3")), Taken(1, cards("R4"))), cards("B6"))


@pytest.mark.rule("CG-10")
def test_many_weak_residents_may_be_worth_more_than_few_strong_ones() -> None:
    """The rulebook's second tip: four 3s against two 4s."""
    state = position("R3 O3 Y3", "G3 R4 O4", ("", ""), shields={0: (0, 1)})
    assert rules.view(state, None).scores == (12, 8)


@pytest.mark.rule("CG-10")
def test_fields_are_scored_from_one_end_to_the_other_each_on_its_own() -> None:
    state = position("R3 .. .. | O3 .. .. | Y3", "", ("B6", ""), shields={0: (0,), 1: (1,), 3: (1,)})
    assert rules.scoring(state) == (
        FieldScored(0, (Taken(0, cards("R3")),), ()),
        FieldScored(1, (Taken(1, cards("O3")),), ()),
        FieldScored(2, (), cards("Y3")),
        FieldScored(3, (Taken(1, ()),), ()),
    )
    assert rules.view(state, None).scoring == rules.scoring(state)


# --------------------------------------------------------------------- outcome


def ranks(upper: str, shields: dict[int, tuple[int, ...]], seats: int = 2) -> tuple[int, ...] | None:
    return rules.outcome(position(upper, "", ("R8",) * (seats - 1) + ("",), shields=shields))


@pytest.mark.rule("CG-11")
def test_most_points_win() -> None:
    assert ranks("R3 .. .. | O4", {0: (0,), 1: (1,)}) == (2, 1)
    assert ranks("R3 O4 B5", {0: (1, 2, 0)}, seats=3) == (1, 3, 2)


@pytest.mark.rule("CG-11")
def test_strength_counts_not_the_number_of_residents() -> None:
    assert ranks("R3 O3 .. | B7", {0: (0,), 1: (1,)}, seats=3) == (2, 1, 3)


@pytest.mark.rule("CG-11")
def test_points_are_the_strengths_of_all_residents_collected() -> None:
    """The rulebook's example: 8 + 8 + 7 + 7 + 7 + 6 + 6 + 5 = 54."""
    state = position("R8 O8 .. | R7 O7 Y7 | R6 O6 .. | R5", "", ("Y3", "Y4", "Y5", ""), shields=dict.fromkeys(range(4), (2,)))
    assert rules.view(state, None).scores == (0, 0, 54, 0)


@pytest.mark.rule("CG-11")
def test_of_equal_points_more_residents_win() -> None:
    assert ranks("R3 O3 .. | B6", {0: (0,), 1: (1,)}) == (1, 2)
    assert ranks("R3 O3 .. | B6", {0: (1,), 1: (0,)}) == (2, 1)
    assert ranks("R4 O4 Y4 | B6 G6 .. | W7", {0: (2,), 1: (0,), 2: (1,)}, seats=3) == (2, 3, 1)


@pytest.mark.rule("CG-11")
def test_of_equal_points_and_residents_the_victory_is_shared() -> None:
    assert ranks("R3 O3 .. | B3 G3", {0: (0,), 1: (1,)}) == (1, 1)
    assert ranks("R3 O5 .. | B4 G4 .. | W7", {0: (0, 0), 1: (2,), 2: (1,)}, seats=3) == (1, 3, 1)
    assert ranks("R3 .. .. | B3 .. .. | W6", {0: (0,), 1: (1,), 2: (2,)}, seats=3) == (2, 2, 1)
    assert ranks("", {}, seats=4) == (1, 1, 1, 1)


@pytest.mark.rule("CG-11")
def test_there_is_no_outcome_before_the_end() -> None:
    assert rules.outcome(dealt(2)) is None
    assert rules.view(dealt(2), None).scores == ()


# ----------------------------------------------------------------- ended early


def test_a_match_that_ends_early_is_finished_unscored_and_keeps_its_secrets() -> None:
    state = position("## R4", "", ("O5", "W6"), shields={0: (1,)})
    ended = rules.end_early(state)
    assert rules.to_move(ended) == ()
    assert rules.outcome(ended) is None
    for viewer in (0, 1, None):
        assert rules.view(ended, viewer) == rules.view(state, viewer)
    assert refused(ended, 0, Place(card("O5"), 2, 0)) == Reason.MATCH_FINISHED


def test_residents_are_written_as_people_read_them() -> None:
    assert str(card("W8")) == "GREY 8"


def test_events_of_different_kinds_are_never_equal() -> None:
    events: list[Event] = [HandDealt(0, 0, ()), ShieldPlaced(0, 0), FieldScored(0, (), ()), ResidentPlaced(0, 0, 0, None, True)]
    assert all((one == other) == (one is other) for one in events for other in events)


def test_a_field_is_seen_as_it_lies() -> None:
    state = position("R3 ##", ".. .. B6", ("O5", "W6"), shields={0: (1, 0)})
    free, down = SlotView(None, False), SlotView(None, True)
    seen = (SlotView(card("R3"), False), down, free, free, free, SlotView(card("B6"), False))
    assert rules.view(state, None).fields[0] == FieldView(True, seen, (1, 0))
