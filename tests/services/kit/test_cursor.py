from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.kit.cursor import BEGINNING, MARK_BYTES, START, Cursor
from services.kit.errors import Unreadable

cursors = st.builds(
    Cursor,
    version=st.integers(0, 2**32 - 1),
    n=st.integers(0, 2**16 - 1),
    mark=st.binary(min_size=MARK_BYTES, max_size=MARK_BYTES),
)


@settings(deadline=None)
@given(cursors)
def test_a_cursor_comes_back_as_it_was(cursor: Cursor) -> None:
    text = str(cursor)
    assert Cursor.parse(text) == cursor
    assert len(text) == 16
    # It goes into URLs as it is.
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_cursor_names_its_entry() -> None:
    assert Cursor(12, 3, b"marked").entry == "12-3"


def test_the_beginning_is_a_cursor_like_any_other() -> None:
    assert Cursor.parse(START) == BEGINNING


@settings(deadline=None)
@given(st.text(max_size=30).filter(lambda text: len(text) != 16))
def test_what_is_not_of_16_characters_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        Cursor.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "x" * 5000,
        "é" * 16,
        "AAAA AAAA AAAA A",
        "AAAAAAAAAAAAAA==",
        "AAAAAAAAAAAAAAA\n",
        "AAAAAAAAAAAAAAA=",
        "\ud800" * 16,
        "\0" * 16,
    ],
)
def test_a_cursor_that_is_none_is_unreadable_by_its_fields_name(text: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        Cursor.parse(text, "after")
    assert unreadable.value.field == "after"


def test_every_16_characters_of_the_alphabet_are_some_cursor_and_no_crash() -> None:
    for n in range(64):
        character = base64.urlsafe_b64encode(bytes([n << 2]))[:1].decode()
        assert str(Cursor.parse(character * 16)) == character * 16
