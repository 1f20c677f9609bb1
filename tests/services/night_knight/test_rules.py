"""Night Knight's rules, one after the other. S, K, A, D are sleeping dragon, King of Silence, attacking and defending knight."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.night_knight import rules
from services.night_knight.rules import (
    ROUNDS,
    Action,
    Card,
    CardsRevealed,
    Event,
    Evidence,
    Kind,
    Move,
    Options,
    OwnCardShown,
    Peek,
    Peeked,
    Phase,
    React,
    Reacted,
    Reaction,
    Reason,
    Refusal,
    Result,
    RoundResolved,
    RoundStarted,
    State,
    Step,
    Verdict,
)

T = TypeVar("T")

DRAGON, KING, ATTACKER, DEFENDER = Kind

KINDS = dict(zip("SKAD", Kind, strict=True))

SHIELD, SLEEP, TOUCH, PASS = (React(1, action) for action in Action if action is not Action.THROW)

SEATS = [3, 4, 5, 6]


def throw(target: int) -> React:
    return React(1, Action.THROW, target)


def cards(letters: str) -> tuple[Kind, ...]:
    return tuple(KINDS[letter] for letter in letters)


def written(kinds: Sequence[Kind]) -> str:
    letters = {kind: letter for letter, kind in KINDS.items()}
    return "".join(letters[kind] for kind in kinds)


class Scripted:
    """A chance whose deck begins with the cards given; the rest follows in its usual order."""

    def __init__(self, top: str = "") -> None:
        self.top = cards(top)
        self.shuffled: list[tuple[str, tuple[object, ...]]] = []

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        self.shuffled.append((label, tuple(items)))
        rest = list(items)
        return (*(rest.pop(rest.index(card)) for card in self.top), *rest)  # type: ignore[arg-type]


class NoChance:
    """For all that draws nothing from chance."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        raise AssertionError(f"nothing is to be shuffled here, yet {label} was")


def counting(*piles: str, options: Options | None = None, round_: int = 1) -> State:
    """A countdown with these piles; the first letters are revealed first."""
    return State(
        options=options or Options(),
        phase=Phase.COUNTDOWN,
        round=round_,
        piles=tuple(map(cards, piles)),
        out=(),
        own_shown=False,
        reactions=(),
        last_round=None,
    )


def hidden(*piles: str, options: Options | None = None) -> State:
    """The first part of an action phase: nobody sees the own card yet."""
    state = timeout(counting(*piles, options=options)).state
    assert (state.phase, state.own_shown) == (Phase.ACTION, False)
    return state


def shown(*piles: str, options: Options | None = None) -> State:
    """The second part of an action phase: everybody sees all cards."""
    state = timeout(hidden(*piles, options=options)).state
    assert (state.phase, state.own_shown) == (Phase.ACTION, True)
    return state


def timeout(state: State) -> Step:
    return rules.on_timeout(state, NoChance())


def made(state: State, seat: int, move: Move) -> Step:
    result = rules.apply(state, seat, move, NoChance())
    assert isinstance(result, Step), result
    assert move in rules.legal(state, seat)
    return result


def refused(state: State, seat: int, move: Move) -> Reason:
    result = rules.apply(state, seat, move, NoChance())
    assert isinstance(result, Refusal), "the move was to be refused"
    assert move not in rules.legal(state, seat)
    return result.reason


def done(state: State, *reactions: tuple[int, React]) -> State:
    """After these reactions of these seats."""
    for seat, move in reactions:
        state = made(state, seat, move).state
    return state


def resolved(state: State, *reactions: tuple[int, React]) -> State:
    """After these reactions and, unless they close the round, the end of its time."""
    state = done(state, *reactions)
    return timeout(state).state if state.phase is Phase.ACTION else state


def results(state: State) -> tuple[Result, ...]:
    assert state.last_round is not None
    return state.last_round.results


def rights(state: State) -> list[bool]:
    return [result.right for result in results(state)]


def verdicts(state: State) -> list[tuple[int, Verdict, str]]:
    """Who got which verdict by which rule, in order."""
    return [(reaction.seat, reaction.verdict, reaction.evidence.rule) for reaction in rules.view(state, None).reactions]


def piles(state: State) -> list[str]:
    return [written(pile) for pile in state.piles]


def kinds(events: Sequence[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


# --------------------------------------------------------------------- setup


@pytest.mark.rule("NK-01")
def test_the_deck_has_56_cards_and_is_shuffled_once_in_its_own_stream() -> None:
    chance = Scripted()
    rules.setup(Options(), 4, chance)
    ((label, deck),) = chance.shuffled
    assert label == "deck"
    assert Counter(deck) == {DRAGON: 7, KING: 7, ATTACKER: 21, DEFENDER: 21}


@pytest.mark.rule("NK-01")
@pytest.mark.parametrize("seats", SEATS)
def test_squire_mode_leaves_out_the_kings(seats: int) -> None:
    chance = Scripted()
    state = rules.setup(Options(squire=True), seats, chance).state
    ((_, deck),) = chance.shuffled
    assert Counter(deck) == {DRAGON: 7, ATTACKER: 21, DEFENDER: 21}
    assert not any(KING in pile for pile in state.piles)


@pytest.mark.rule("NK-02")
@pytest.mark.parametrize(("seats", "pillows"), [(3, 1), (4, 2), (5, 2), (6, 2)])
def test_three_players_have_one_pillow_and_more_have_two(seats: int, pillows: int) -> None:
    assert rules.view(rules.setup(Options(), seats, Scripted()).state, None).pillows_left == pillows


@pytest.mark.rule("NK-03")
@pytest.mark.parametrize(("seats", "size"), [(3, 12), (4, 12), (5, 8), (6, 8)])
@pytest.mark.parametrize("squire", [False, True])
def test_everybody_is_dealt_a_pile_from_the_front_of_the_deck(seats: int, size: int, squire: bool) -> None:
    step = rules.setup(Options(squire), seats, Scripted("AD" * 20))
    assert [len(pile) for pile in step.state.piles] == [size] * seats
    assert "".join(piles(step.state))[:40] == "AD" * min(20, seats * size // 2)
    assert step.events == (RoundStarted(1, (size,) * seats),)
    assert (step.state.phase, step.state.round) == (Phase.COUNTDOWN, 1)


@pytest.mark.rule("NK-03")
def test_no_view_and_no_event_shows_a_pile_not_even_to_its_owner() -> None:
    one, two = counting("ASKD", "DSKA", "SAAD"), counting("AKSA", "DAKS", "SDKA")  # the same cards in front
    for viewer in (0, 1, 2, None):
        assert rules.view(one, viewer) == rules.view(two, viewer)
        for reveal in (timeout, lambda state: timeout(timeout(state).state), lambda state: timeout(timeout(timeout(state).state).state)):
            assert reveal(one).events == reveal(two).events
            assert rules.view(reveal(one).state, viewer) == rules.view(reveal(two).state, viewer)


# ---------------------------------------------------------------- the windows


def open_window(state: State) -> rules.Window:
    window = rules.window(state)
    assert window is not None
    return window


def length(state: State) -> int:
    return open_window(state).ms


@pytest.mark.rule("NK-04")
@pytest.mark.rule("NK-13")
def test_the_windows_of_a_round_follow_each_other() -> None:
    options = Options(action_ms=3000, own_card_delay_ms=200, countdown_ms=1000)
    step = rules.setup(options, 3, Scripted("AD"))
    seen, numbers = [], []
    for _ in range(8):
        seen.append((step.state.round, step.state.phase, length(step.state), kinds(step.events)))
        numbers.append(open_window(step.state).number)
        step = timeout(step.state)
    assert len(set(numbers)) == 8
    one_round = [
        (Phase.COUNTDOWN, 1000, [RoundStarted]),
        (Phase.ACTION, 200, [CardsRevealed]),
        (Phase.ACTION, 2800, [OwnCardShown]),
        (Phase.RESOLUTION, 1000, [RoundResolved]),
    ]
    assert seen == [(round_, *row) for round_ in (1, 2) for row in one_round]


@pytest.mark.rule("NK-04")
def test_without_a_delay_everybody_sees_all_cards_at_the_reveal() -> None:
    step = timeout(counting("AS", "DS", "SS", options=Options(own_card_delay_ms=0, action_ms=700)))
    assert kinds(step.events) == [CardsRevealed, OwnCardShown]
    assert length(step.state) == 700
    assert kinds(timeout(step.state).events) == [RoundResolved]


@pytest.mark.rule("NK-04")
@pytest.mark.parametrize("delay", [500, 501, 2000])
def test_an_action_phase_that_is_over_before_own_cards_are_due_shows_them_at_its_end(delay: int) -> None:
    state = hidden("AS", "DS", "SS", options=Options(own_card_delay_ms=delay, action_ms=500))
    assert length(state) == 500
    step = timeout(state)
    assert kinds(step.events) == [OwnCardShown, RoundResolved]
    assert step.state.phase is Phase.RESOLUTION


@pytest.mark.rule("NK-04")
def test_the_defaults_are_those_of_the_rules() -> None:
    state = rules.setup(Options(), 3, Scripted()).state
    lengths = []
    for _ in range(4):
        lengths.append(length(state))
        state = timeout(state).state
    assert lengths == [2000, 150, 3850, 2000]


def test_a_finished_match_has_no_window() -> None:
    finished = resolved(shown("A", "AS", "AS"))
    assert finished.phase is Phase.FINISHED
    assert rules.window(finished) is None
    assert timeout(finished) == Step(finished, ())


# ----------------------------------------------------------------- the reveal


@pytest.mark.rule("NK-04")
def test_others_see_a_card_before_its_owner_and_spectators_see_none() -> None:
    step = timeout(counting("AS", "DS", "KS"))
    (event,) = step.events
    everything = (Card(0, ATTACKER), Card(1, DEFENDER), Card(2, KING))
    assert event == CardsRevealed(1, everything)
    expected: dict[int | None, tuple[Card, ...]] = {
        0: (Card(0, None), Card(1, DEFENDER), Card(2, KING)),
        1: (Card(0, ATTACKER), Card(1, None), Card(2, KING)),
        2: (Card(0, ATTACKER), Card(1, DEFENDER), Card(2, None)),
        None: (Card(0, None), Card(1, None), Card(2, None)),
    }
    for viewer, seen in expected.items():
        assert rules.redact(event, viewer) == CardsRevealed(1, seen)
        assert rules.view(step.state, viewer).cards == seen
    after = timeout(step.state)
    assert after.events == (OwnCardShown(1, everything),)
    for viewer in expected:
        assert rules.redact(after.events[0], viewer) == after.events[0]
        assert rules.view(after.state, viewer).cards == everything


@pytest.mark.rule("NK-04")
def test_nothing_is_seen_and_nobody_reacts_before_the_reveal() -> None:
    state = counting("AS", "DS", "KS")
    assert [rules.view(state, viewer).cards for viewer in (0, 1, 2, None)] == [()] * 4
    assert refused(state, 0, PASS) == Reason.NOT_IN_ACTION


@pytest.mark.rule("NK-04")
def test_reactions_count_from_the_reveal_on_and_a_round_that_closes_first_shows_all_cards() -> None:
    state = hidden("AS", "DS", "SS")
    step = made(state, 0, throw(1))  # the only pillow
    assert kinds(step.events) == [Reacted, OwnCardShown, RoundResolved]
    assert step.events[1] == OwnCardShown(1, (Card(0, ATTACKER), Card(1, DEFENDER), Card(2, DRAGON)))
    assert rights(step.state) == [True, False, False]


# -------------------------------------------------------------------- peeking


@pytest.mark.rule("NK-05")
def test_a_peek_puts_one_out_for_the_round_shows_nothing_and_costs_it() -> None:
    state = counting("KSA", "ASS", "DSS", "SAA")
    step = made(state, 0, Peek(1))
    assert step.events == (Peeked(0),)
    assert rules.to_move(step.state) == (1, 2, 3)
    assert rules.view(step.state, 0).cards == ()
    assert refused(step.state, 0, Peek(1)) == Reason.ALREADY_OUT

    revealed = timeout(step.state)
    assert revealed.events == (CardsRevealed(1, (Card(1, ATTACKER), Card(2, DEFENDER), Card(3, DRAGON))),)
    assert rules.view(revealed.state, None).out == (0,)
    assert rules.to_move(revealed.state) == (1, 2, 3)
    assert refused(revealed.state, 0, PASS) == Reason.ALREADY_OUT
    after = resolved(revealed.state, (1, throw(2)), (3, SLEEP))
    # The King that was not revealed rules over nobody.
    assert results(after) == (
        Result(0, None, False, "NK-05"),
        Result(1, ATTACKER, True, "NK-07"),
        Result(2, DEFENDER, False, "NK-08"),
        Result(3, DRAGON, True, "NK-09"),
    )
    assert piles(after)[0] == "SAK"
    assert refused(after, 0, PASS) == Reason.ALREADY_OUT
    assert rules.view(timeout(after).state, None).out == ()


@pytest.mark.rule("NK-05")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_when_everybody_peeks_the_countdown_ends_the_round_with_every_card_under_its_pile(order: tuple[int, ...]) -> None:
    state = counting("AS", "DS", "KS")
    for seat in order:
        state = made(state, seat, Peek(1)).state
    assert (state.out, rules.to_move(state), state.phase) == ((0, 1, 2), (), Phase.COUNTDOWN)
    step = timeout(state)
    assert step.events == (RoundResolved(1, tuple(Result(seat, None, False, "NK-05") for seat in range(3))),)
    assert step.state.phase is Phase.RESOLUTION
    assert piles(step.state) == ["SA", "SD", "SK"]
    assert rules.to_move(step.state) == ()
    assert timeout(step.state).events == (RoundStarted(2, (2, 2, 2)),)


@pytest.mark.rule("NK-05")
def test_one_peeks_before_the_reveal_only() -> None:
    assert refused(hidden("AS", "DS", "KS"), 0, Peek(1)) == Reason.NOT_IN_COUNTDOWN
    assert refused(shown("AS", "DS", "KS"), 0, Peek(1)) == Reason.NOT_IN_COUNTDOWN
    assert refused(resolved(shown("AS", "DS", "KS")), 0, Peek(1)) == Reason.NOT_IN_COUNTDOWN


@pytest.mark.rule("NK-05")
@pytest.mark.rule("NK-14")
def test_a_defender_who_peeked_revealed_none() -> None:
    state = made(counting("AS", "DS", "DS", "SS"), 1, Peek(1)).state
    state = timeout(timeout(state).state).state
    after = resolved(state, (0, throw(1)))
    assert results(after)[0] == Result(0, ATTACKER, False, "NK-14")


@pytest.mark.rule("NK-05")
@pytest.mark.rule("NK-13")
def test_the_action_phase_does_not_wait_for_those_who_are_out() -> None:
    state = made(counting("AS", "AS", "AS"), 1, Peek(1)).state
    state = timeout(state).state
    assert done(state, (0, PASS), (2, PASS)).phase is Phase.RESOLUTION


# ------------------------------------------------------------- right and wrong

# The card of seat 0, those of the seats 1 to 3, what is right, and the rule of the card.
TABLE = [
    pytest.param("A", "DAS", [throw(1)], "NK-07", marks=pytest.mark.rule("NK-07")),
    pytest.param("A", "DDS", [throw(1), throw(2)], "NK-07", marks=pytest.mark.rule("NK-07")),
    pytest.param("A", "AAS", [None, PASS], "NK-07", marks=pytest.mark.rule("NK-07")),
    pytest.param("A", "SSS", [None, PASS], "NK-07", marks=pytest.mark.rule("NK-07")),
    pytest.param("D", "ASS", [SHIELD], "NK-08", marks=pytest.mark.rule("NK-08")),
    pytest.param("D", "DAA", [SHIELD], "NK-08", marks=pytest.mark.rule("NK-08")),
    pytest.param("D", "DDS", [None, PASS], "NK-08", marks=pytest.mark.rule("NK-08")),
    pytest.param("D", "SSS", [None, PASS], "NK-08", marks=pytest.mark.rule("NK-08")),
    pytest.param("S", "SSS", [SLEEP], "NK-09", marks=pytest.mark.rule("NK-09")),
    pytest.param("S", "ADA", [SLEEP], "NK-09", marks=pytest.mark.rule("NK-09")),
    pytest.param("S", "ADK", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("A", "DKD", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("A", "KKK", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("D", "AKA", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("D", "DDK", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("K", "SAD", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
    pytest.param("K", "KKK", [None, PASS], "NK-06", marks=pytest.mark.rule("NK-06")),
]


@pytest.mark.rule("NK-15")
@pytest.mark.parametrize("reaction", [None, PASS, throw(1), throw(2), throw(3), SHIELD, SLEEP, TOUCH])
@pytest.mark.parametrize(("own", "others", "right", "rule"), TABLE)
def test_what_is_right_for_a_card_among_others(own: str, others: str, right: list[React | None], rule: str, reaction: React | None) -> None:
    state = shown(own + "SA", *(other + "SA" for other in others))
    after = resolved(state, (0, reaction)) if reaction else resolved(state)
    if reaction == TOUCH:
        rule = "NK-11"
    elif reaction and reaction.action is Action.THROW and throw(1) in right and reaction not in right:
        rule = "NK-14"
    assert results(after)[0] == Result(0, KINDS[own], reaction in right, rule)
    assert piles(after)[0] == ("SA" if reaction in right else "SA" + own)


@pytest.mark.rule("NK-08")
def test_a_defender_holds_a_pillow_up_whether_or_not_anything_is_thrown() -> None:
    thrown_at = resolved(shown("AS", "DS", "SS", "SS"), (0, throw(1)), (1, SHIELD))
    not_thrown_at = resolved(shown("AS", "DS", "SS", "SS"), (1, SHIELD))
    assert results(thrown_at)[1] == results(not_thrown_at)[1] == Result(1, DEFENDER, True, "NK-08")


@pytest.mark.rule("NK-15")
def test_right_cards_leave_the_game_and_wrong_ones_go_under_the_pile() -> None:
    after = resolved(shown("ASKA", "DSKA", "SAAA", "AKKA"), (0, throw(1)), (1, throw(0)))
    assert rights(after) == [True, False, False, False]
    assert piles(after) == ["SKA", "SKAD", "AAAS", "KKAA"]
    assert rules.view(after, None).pile_sizes == (3, 4, 4, 4)


@pytest.mark.rule("NK-15")
def test_being_too_slow_is_wrong_just_where_something_was_to_be_done() -> None:
    after = resolved(shown("AS", "AS", "SS", "AS"))
    assert rights(after) == [True, True, False, True]


# ------------------------------------------------------------ pillows and order


@pytest.mark.rule("NK-10")
@pytest.mark.parametrize("first", [throw(1), SHIELD, SLEEP, TOUCH, PASS])
@pytest.mark.parametrize("second", [throw(1), SHIELD, SLEEP, TOUCH, PASS])
def test_one_reacts_once_a_round(first: React, second: React) -> None:
    state = done(shown("AS", "DS", "SS", "SS"), (0, first))
    assert refused(state, 0, second) == Reason.ALREADY_REACTED
    assert rules.to_move(state) == (1, 2, 3)


@pytest.mark.rule("NK-10")
def test_each_use_takes_a_pillow_from_the_middle_for_the_round() -> None:
    state = shown("AS", "DS", "SS", "SS")
    left = [rules.view(state, None).pillows_left]
    for seat, move in [(3, PASS), (0, throw(1)), (1, SHIELD)]:
        state = made(state, seat, move).state
        left.append(rules.view(state, None).pillows_left)
    assert left == [2, 2, 1, 0]
    assert verdicts(state) == [(3, Verdict.PASSED, "NK-13"), (0, Verdict.GRANTED, "NK-10"), (1, Verdict.GRANTED, "NK-10")]


@pytest.mark.rule("NK-11")
def test_a_touch_uses_up_ones_grab_and_leaves_the_pillow_and_is_wrong() -> None:
    state = done(shown("AS", "KS", "SS"), (0, TOUCH))
    assert verdicts(state) == [(0, Verdict.TOUCHED, "NK-11")]
    assert rules.view(state, None).pillows_left == 1
    assert refused(state, 0, SLEEP) == Reason.ALREADY_REACTED
    after = resolved(state, (2, SLEEP))
    assert verdicts(after)[1] == (2, Verdict.GRANTED, "NK-10")
    assert results(after)[0] == Result(0, ATTACKER, False, "NK-11")


def open_without_pillows(*fronts: str) -> State:
    """An action phase in which every pillow is gone and yet the round is open, as where order is not settled at once (NK-19)."""
    state = shown(*fronts)
    return state._replace(reactions=(Reaction(0, Action.SLEEP, None, Verdict.GRANTED, 1, Evidence(0, 0, 0, 0, "NK-10")),))


@pytest.mark.rule("NK-12")
@pytest.mark.parametrize("move", [throw(2), SHIELD, SLEEP, TOUCH])
def test_a_grab_that_finds_no_pillow_is_too_late_and_no_action(move: React) -> None:
    wrong = made(open_without_pillows("SS", "AS", "DS"), 1, move).state
    assert verdicts(wrong)[-1] == (1, Verdict.TOO_LATE, "NK-12")
    assert results(wrong)[1] == Result(1, ATTACKER, False, "NK-07")
    right = made(open_without_pillows("SS", "AS", "KS"), 1, move).state
    assert verdicts(right)[-1] == (1, Verdict.TOO_LATE, "NK-12")
    assert results(right)[1] == Result(1, ATTACKER, True, "NK-06")


@pytest.mark.rule("NK-12")
def test_who_finds_no_pillow_has_used_up_the_grab() -> None:
    after = made(open_without_pillows("SS", "AS", "DS"), 1, throw(2)).state
    assert refused(after, 1, PASS) == Reason.ALREADY_REACTED


@pytest.mark.rule("NK-12")
@pytest.mark.rule("NK-06")
def test_all_pillows_lost_to_others_cost_nothing_where_a_king_is_revealed() -> None:
    after = resolved(shown("AS", "KS", "DS", "SS"), (2, SHIELD), (3, SLEEP))
    assert rights(after) == [True, True, False, False]
    assert piles(after) == ["S", "S", "SD", "SS"]
    assert rules.view(after, None).pillows_left == 0
    late = done(after, (0, throw(2)), (1, SLEEP))  # whoever holds the King may reach for a pillow as well
    assert verdicts(late)[2:] == [(0, Verdict.TOO_LATE, "NK-13"), (1, Verdict.TOO_LATE, "NK-13")]
    assert results(late) == (
        Result(0, ATTACKER, True, "NK-06"),
        Result(1, KING, True, "NK-06"),
        Result(2, DEFENDER, False, "NK-06"),
        Result(3, DRAGON, False, "NK-06"),
    )
    assert piles(late) == piles(after)


@pytest.mark.rule("NK-13")
@pytest.mark.parametrize(
    ("fronts", "pillows"), [(("AS", "DS", "SS"), 1), (("AS", "DS", "SS", "SS"), 2), (("AS", "DS", "SS", "SS", "KS"), 2)]
)
def test_the_round_closes_when_the_last_pillow_is_taken(fronts: tuple[str, ...], pillows: int) -> None:
    state = shown(*fronts)
    for number, (seat, move) in enumerate([(0, throw(1)), (1, SHIELD)][:pillows], start=1):
        step = made(state, seat, move)
        state = step.state
        assert kinds(step.events) == ([Reacted, RoundResolved] if number == pillows else [Reacted])
    assert state.phase is Phase.RESOLUTION


@pytest.mark.rule("NK-13")
def test_the_round_closes_when_everybody_still_in_has_acted_or_passed() -> None:
    state = done(shown("AS", "AS", "SS", "KS"), (3, PASS), (2, SLEEP), (0, TOUCH))
    assert state.phase is Phase.ACTION
    step = made(state, 1, PASS)
    assert kinds(step.events) == [Reacted, RoundResolved]
    assert step.state.phase is Phase.RESOLUTION


@pytest.mark.rule("NK-13")
def test_the_round_closes_when_its_time_is_up() -> None:
    step = timeout(done(shown("AS", "DS", "SS", "KS"), (3, PASS)))
    assert kinds(step.events) == [RoundResolved]
    assert step.state.phase is Phase.RESOLUTION


@pytest.mark.rule("NK-13")
def test_a_pass_is_final() -> None:
    assert refused(done(shown("AS", "DS", "SS"), (0, PASS)), 0, throw(1)) == Reason.ALREADY_REACTED


@pytest.mark.rule("NK-13")
@pytest.mark.parametrize("move", [throw(1), throw(2), SHIELD, SLEEP, TOUCH, PASS])
def test_a_reaction_to_the_round_just_closed_is_recorded_and_changes_nothing_else(move: React) -> None:
    before = resolved(shown("AS", "DS", "SS", "SS"), (1, SHIELD), (2, SLEEP))
    assert rules.to_move(before) == (0, 3)
    assert refused(before, 2, PASS) == Reason.ALREADY_REACTED
    step = made(before, 0, move)
    reaction = Reaction(0, move.action, move.target, Verdict.TOO_LATE, 3, Evidence(0, 0, 0, 0, "NK-13"))
    assert step.events == (Reacted(reaction),)
    one, two = rules.view(before, None), rules.view(step.state, None)
    assert two.reactions == (*one.reactions, reaction)
    assert two.last_round is not None
    assert two.last_round.reactions == two.reactions
    assert step.state.piles == before.piles
    assert results(step.state) == results(before)
    assert two.pillows_left == one.pillows_left == 0
    assert refused(step.state, 0, PASS) == Reason.ALREADY_REACTED
    assert rules.to_move(step.state) == (3,)


@pytest.mark.rule("NK-13")
def test_once_the_next_round_has_started_the_last_one_takes_no_reaction() -> None:
    state = timeout(resolved(shown("AS", "DS", "SS"))).state
    assert state.round == 2
    assert refused(state, 0, PASS) == Reason.ROUND_OVER
    assert refused(state, 0, Peek(1)) == Reason.ROUND_OVER
    revealed = timeout(state).state
    assert refused(revealed, 0, PASS) == Reason.ROUND_OVER
    assert made(revealed, 0, React(2, Action.PASS)).state.reactions[0].seat == 0


@pytest.mark.rule("NK-13")
@pytest.mark.parametrize(
    "state", [counting("AS", "DS", "SS"), hidden("AS", "DS", "SS"), shown("AS", "DS", "SS"), resolved(shown("AS", "DS", "SS"))]
)
def test_a_round_to_come_takes_no_move(state: State) -> None:
    assert refused(state, 0, React(2, Action.PASS)) == Reason.ROUND_OVER
    assert refused(state, 0, Peek(2)) == Reason.ROUND_OVER


@pytest.mark.rule("NK-14")
@pytest.mark.parametrize(
    "move",
    [throw(0), throw(3), throw(-1), throw(99), React(1, Action.THROW), React(1, Action.SHIELD, 1), React(1, Action.PASS, 1)],
)
def test_a_throw_at_oneself_or_at_no_seat_is_refused_and_uses_nothing_up(move: React) -> None:
    state = shown("AS", "DS", "SS")
    assert refused(state, 0, move) == Reason.NO_SUCH_TARGET
    assert verdicts(made(state, 0, throw(1)).state) == [(0, Verdict.GRANTED, "NK-10")]
    assert refused(resolved(state), 0, move) == Reason.NO_SUCH_TARGET


@pytest.mark.rule("NK-14")
@pytest.mark.parametrize(("target", "right", "rule"), [(1, True, "NK-07"), (2, False, "NK-14"), (3, False, "NK-14")])
def test_a_throw_at_somebody_who_revealed_no_defender_is_wrong(target: int, right: bool, rule: str) -> None:
    after = resolved(shown("AS", "DS", "SS", "AS"), (0, throw(target)))
    assert results(after)[0] == Result(0, ATTACKER, right, rule)
    assert verdicts(after) == [(0, Verdict.GRANTED, "NK-10")]


@pytest.mark.rule("NK-17")
@pytest.mark.parametrize("seats", SEATS)
def test_all_pillows_are_back_for_the_next_round(seats: int) -> None:
    state = shown("AS", *["DS"] * (seats - 1))
    pillows = rules.view(state, None).pillows_left
    after = done(state, *[(0, throw(1)), (1, SHIELD)][:pillows])
    assert rules.view(after, None).pillows_left == 0
    following = timeout(after).state
    assert rules.view(following, None).pillows_left == pillows
    assert rules.view(following, None).reactions == ()


@pytest.mark.rule("NK-19")
def test_reactions_are_ranked_in_the_order_in_which_they_come_and_carry_their_evidence() -> None:
    state = shown("AS", "DS", "SS", "KS")
    for seat, move in [
        (3, React(1, Action.PASS, received_ms=410)),
        (2, React(1, Action.SLEEP, received_ms=512)),
        (0, React(1, Action.THROW, 1, received_ms=480)),  # order is not for the rules to find
        (1, React(1, Action.SHIELD, received_ms=520)),
    ]:
        state = made(state, seat, move).state
    assert [(reaction.seat, reaction.rank, reaction.evidence) for reaction in rules.view(state, None).reactions] == [
        (3, 1, Evidence(410, 0, 0, 0, "NK-13")),
        (2, 2, Evidence(512, 0, 0, 0, "NK-10")),
        (0, 3, Evidence(480, 0, 0, 0, "NK-10")),
        (1, 4, Evidence(520, 0, 0, 0, "NK-13")),
    ]


@pytest.mark.rule("NK-19")
@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0)])
def test_the_first_to_come_gets_the_last_pillow(first: int, second: int) -> None:
    move = {0: throw(1), 2: SLEEP}
    after = made(shown("AS", "DS", "SS"), first, move[first]).state
    late = made(after, second, move[second]).state
    assert verdicts(late) == [(first, Verdict.GRANTED, "NK-10"), (second, Verdict.TOO_LATE, "NK-13")]
    assert [rights(late)[first], rights(late)[second]] == [True, False]


@pytest.mark.rule("NK-19")
def test_when_a_reaction_was_received_makes_no_other_move_of_it() -> None:
    assert React(1, Action.PASS, received_ms=300) == React(1, Action.PASS)
    assert hash(React(1, Action.PASS, received_ms=300)) == hash(React(1, Action.PASS))


# ------------------------------------------------------------ the two examples

A, B, C, D = range(4)


COMPENSATED = Options(ordering=rules.Ordering.COMPENSATED, max_compensation_ms=120, action_ms=1000)


@pytest.mark.rule("NK-19")
@pytest.mark.parametrize(("ordering", "cap"), [(rules.Ordering.ARRIVAL, 0), (rules.Ordering.COMPENSATED, 120)])
def test_evidence_tells_of_the_line_and_of_what_was_given_back(ordering: rules.Ordering, cap: int) -> None:
    state = shown("AAA", "DDD", "SSS", options=COMPENSATED._replace(ordering=ordering))
    given = min(180, cap)
    move = React(1, Action.SLEEP, received_ms=700, round_trip_ms=180, compensation_ms=given)
    (reacted, *_) = made(state, 2, move).events
    assert isinstance(reacted, Reacted)
    assert reacted.reaction.evidence == Evidence(700, 180, given, cap, "NK-10")


@pytest.mark.rule("NK-13")
@pytest.mark.rule("NK-19")
def test_the_action_phase_stays_open_for_as_long_as_a_reaction_made_in_time_can_come() -> None:
    state = hidden("AAA", "DDD", "SSS", options=COMPENSATED)
    parts = [rules.window(state), rules.window(timeout(state).state)]
    assert [part and part.ms for part in parts] == [150, 970]
    late = hidden("AAA", "DDD", "SSS", options=COMPENSATED._replace(own_card_delay_ms=1_200))
    window = rules.window(late)
    assert window
    assert window.ms == 1_120
    assert timeout(late).state.phase is Phase.RESOLUTION


@pytest.mark.rule("NK-13")
@pytest.mark.rule("NK-19")
@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize(("received", "given", "in_time"), [(1000, 0, True), (1120, 120, True), (1001, 0, False), (1120, 119, False)])
def test_what_was_made_after_the_action_phase_is_too_late_though_the_round_is_still_open(
    action: Action, received: int, given: int, in_time: bool
) -> None:
    state = shown("AAA", "DDD", "SSS", options=COMPENSATED)
    target = 1 if action is Action.THROW else None
    (reacted, *_) = made(state, 0, React(1, action, target, received, given, given)).events
    assert isinstance(reacted, Reacted)
    assert (reacted.reaction.verdict is not Verdict.TOO_LATE) == in_time
    assert in_time or reacted.reaction.evidence.rule == "NK-13"
    # By arrival whatever finds the round open is in time.
    arrival = shown("AAA", "DDD", "SSS", options=COMPENSATED._replace(ordering=rules.Ordering.ARRIVAL))
    (reacted, *_) = made(arrival, 0, React(1, action, target, received)).events
    assert isinstance(reacted, Reacted)
    assert reacted.reaction.verdict is not Verdict.TOO_LATE


@pytest.mark.rule("NK-18")
def test_the_first_example_of_the_rulebook() -> None:
    state = shown("AK", "SK", "AK", "DK")  # B and C had something to do: which, the text leaves open
    state = made(state, A, throw(D)).state
    step = made(state, D, throw(A))
    assert kinds(step.events) == [Reacted, RoundResolved]
    assert rights(step.state) == [True, False, False, False]
    assert piles(step.state) == ["K", "KS", "KA", "KD"]
    late = done(step.state, (B, SLEEP), (C, throw(D)))
    assert verdicts(late)[2:] == [(B, Verdict.TOO_LATE, "NK-13"), (C, Verdict.TOO_LATE, "NK-13")]
    assert results(late) == results(step.state)


@pytest.mark.rule("NK-18")
def test_the_second_example_of_the_rulebook() -> None:
    state = shown("DA", "KA", "AA", "SA")
    state = done(state, (D, SLEEP), (C, throw(A)))
    assert rights(state) == [True, True, False, False]
    assert {result.rule for result in results(state)} == {"NK-06"}
    assert piles(state) == ["A", "A", "AA", "AS"]
    assert timeout(state).events == (RoundStarted(2, (1, 1, 2, 2)),)


# -------------------------------------------------------------------- the end


@pytest.mark.rule("NK-16")
def test_whoever_gets_rid_of_the_last_card_wins_at_once_and_cards_left_rank_the_others() -> None:
    step = made(shown("A", "DS", "SSS", "AS"), 0, throw(1))
    assert rules.outcome(step.state) is None
    step = made(step.state, 2, SLEEP)
    assert kinds(step.events) == [Reacted, RoundResolved]
    assert step.state.phase is Phase.FINISHED
    assert rules.view(step.state, None).pile_sizes == (0, 2, 2, 2)
    assert rules.outcome(step.state) == (1, 2, 2, 2)
    assert rules.to_move(step.state) == ()
    assert rules.outcome(resolved(shown("A", "ASA", "AAAS", "SS"))) == (1, 2, 4, 2)


@pytest.mark.rule("NK-16")
def test_several_who_get_rid_of_their_last_card_in_the_same_round_share_the_victory() -> None:
    after = resolved(shown("A", "D", "SS", "AS"), (0, throw(1)), (1, SHIELD))
    assert rules.outcome(after) == (1, 1, 3, 3)


@pytest.mark.rule("NK-16")
@pytest.mark.parametrize("seats", SEATS)
def test_everybody_may_share_the_victory(seats: int) -> None:
    after = done(shown("K", *"ADSSA"[: seats - 1]), *[(seat, PASS) for seat in range(seats)])
    assert rules.outcome(after) == (1,) * seats
    assert after.phase is Phase.FINISHED
    assert rights(after) == [True] * seats
    assert piles(after) == [""] * seats
    # Nor is anybody to be slow for it.
    assert rules.outcome(timeout(shown("K", *"ADSSA"[: seats - 1])).state) == (1,) * seats


@pytest.mark.rule("NK-16")
def test_nothing_moves_after_the_end_and_all_is_still_to_be_seen() -> None:
    state = resolved(shown("A", "AS", "SS"))
    for seat in range(3):
        for move in (PASS, SLEEP, throw(1), Peek(1), Peek(2)):
            assert refused(state, seat, move) == Reason.MATCH_FINISHED
    view = rules.view(state, None)
    assert view.cards == (Card(0, ATTACKER), Card(1, ATTACKER), Card(2, DRAGON))
    assert view.last_round is not None
    assert view.last_round.results == results(state)


@pytest.mark.rule("NK-20")
def test_a_match_without_a_winner_ends_with_round_300() -> None:
    step = rules.setup(Options(), 3, Scripted())
    while step.state.phase is not Phase.FINISHED:
        for seat in rules.to_move(step.state):
            step = made(step.state, seat, Peek(step.state.round))
        assert rules.outcome(step.state) is None
        step = timeout(step.state)
    assert step.state.round == ROUNDS == 300
    assert kinds(step.events) == [RoundResolved]
    assert rules.outcome(step.state) == (2, 2, 2)  # nobody is first
    assert rules.to_move(step.state) == ()


@pytest.mark.rule("NK-20")
def test_round_300_may_still_be_won() -> None:
    state = timeout(counting("A", "AS", "AS", round_=300)).state
    assert rules.outcome(timeout(timeout(state).state).state) == (1, 2, 2)


# ----------------------------------------------------------------------- views


def test_a_view_tells_of_the_present_round_and_of_the_last_one_resolved() -> None:
    state = shown("AS", "DS", "SS")
    assert rules.view(state, 0).last_round is None
    after = resolved(state, (0, throw(1)))
    view = rules.view(after, 0)
    assert view.last_round is not None
    assert (view.round, view.last_round.round) == (1, 1)
    assert (view.cards, view.reactions) == (view.last_round.cards, view.last_round.reactions)
    assert view.cards == (Card(0, ATTACKER), Card(1, DEFENDER), Card(2, DRAGON))
    following = rules.view(timeout(after).state, 0)
    assert (following.round, following.cards, following.reactions) == (2, (), ())
    assert following.last_round == view.last_round


def test_the_legal_moves_of_each_phase() -> None:
    reactions = [throw(0), throw(2), SHIELD, SLEEP, TOUCH, PASS]
    assert list(rules.legal(counting("AS", "DS", "SS"), 1)) == [Peek(1)]
    assert list(rules.legal(hidden("AS", "DS", "SS"), 1)) == reactions
    assert list(rules.legal(shown("AS", "DS", "SS"), 1)) == reactions
    assert list(rules.legal(resolved(shown("AS", "DS", "SS")), 1)) == reactions
    assert list(rules.legal(done(shown("AS", "DS", "SS"), (1, PASS)), 1)) == []


@pytest.mark.parametrize(
    "state",
    [counting("AS", "DS", "SS"), hidden("AS", "DS", "SS"), shown("AS", "DS", "SS"), resolved(shown("AS", "DS", "SS"))],
    ids=["countdown", "hidden", "shown", "resolution"],
)
def test_a_match_that_ends_early_is_finished_without_an_outcome_and_keeps_its_secrets(state: State) -> None:
    ended = rules.end_early(state)
    assert rules.to_move(ended) == ()
    assert rules.outcome(ended) is None
    assert rules.window(ended) is None
    assert rules.view(ended, 1).phase is Phase.FINISHED
    assert refused(ended, 0, PASS) == Reason.MATCH_FINISHED
    if state.last_round is None:
        assert rules.view(ended, 1).cards == ()


def test_moves_and_events_of_different_kinds_are_never_equal() -> None:
    moves: list[Move] = [Peek(1), PASS, SHIELD]
    events: list[Event] = [Peeked(1), RoundStarted(1, ()), CardsRevealed(1, ()), OwnCardShown(1, ()), RoundResolved(1, ())]
    assert all((one == other) == (one is other) for group in (moves, events) for one in group for other in group)
