"""Dark Is the Night on the page, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import DESKTOP, PATIENCE_MS, PHONE, Open, fits

_MOST_MOVES = 60
_HUNTRESS, _MONSTER = "0", "1"


async def _begin(page: Page, role: str) -> None:
    """Starts a match against a bot from the first screen; with two turns to dawn, so that none takes long."""
    tile = page.get_by_role("article", name="Dark Is the Night")
    await tile.locator("summary").click()
    await tile.get_by_label("You are").select_option(role)
    await tile.get_by_label("Turns to dawn").fill("2")
    await tile.get_by_role("button", name="Play Dark Is the Night against bots").click()


async def _said(page: Page) -> int:
    return await page.locator(".log li").count()


async def _turn(page: Page, number: int) -> bool:
    """Takes a turn, with whatever it is the number's turn to try; False when the match is over."""
    square, end = page.locator(".square.playable"), page.locator(".final h2")
    await expect(square.or_(end).first).to_be_visible(timeout=PATIENCE_MS)
    if await end.is_visible():
        return False
    before = await _said(page)
    await square.nth(number % await square.count()).click()
    action = page.locator(".choices button:not(.subtle):not([data-key='do-Feint…'])")
    told = page.locator(".log li").nth(before)
    await expect(action.or_(told).first).to_be_attached()
    if await action.count() and await _said(page) == before:
        await action.nth(number % await action.count()).click()
        aimed = page.locator(".choices [aria-pressed=true]")
        await expect(aimed.or_(told).first).to_be_attached()
        if await aimed.count():
            await square.first.click()
    await expect(told).to_be_attached()
    return True


async def _to_the_end(page: Page) -> None:
    for number in range(_MOST_MOVES):
        if not await _turn(page, number):
            return
    raise AssertionError("the match does not end")


@pytest.mark.parametrize(("role", "viewport"), [(_HUNTRESS, PHONE), (_MONSTER, DESKTOP)])
async def test_a_match_is_played_to_its_end_which_is_told_step_by_step_and_replayed(
    opened: Open, role: str, viewport: dict[str, int]
) -> None:
    page = await opened(viewport=viewport)
    await _begin(page, role)
    await _to_the_end(page)
    await expect(page.locator(".final h2")).to_have_text(re.compile("win|Nobody"))
    await expect(page.locator(".scoring h3")).to_have_text(re.compile("^The end, 1 of 3: (The last blow|Dawn)$"))
    await expect(page.locator(".scoring table")).to_have_count(0)
    await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".scoring")).to_contain_text("The Monster hid in the")
    assert await fits(page)
    last = await page.locator(".square .figure.monster").locator("..").get_attribute("data-key")

    await page.get_by_role("link", name="Replay").click()
    assert await page.locator(".figure").count() == 0
    await page.get_by_role("button", name="To the end").click()
    shown = page.locator(".square .figure.monster").locator("..")
    await expect(shown).to_have_attribute("data-key", last or "")
    for _ in range(3):
        await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".scoring h3")).to_have_text("The end, 4 of 4: The Monster’s whole way")
    assert (last or "").removeprefix("dark-") == re.findall(r"\d+", await page.locator(".scoring p").last.inner_text())[-1]


async def test_the_huntress_sees_what_was_announced_and_never_where_the_monster_is(opened: Open) -> None:
    page = await opened()
    await _begin(page, _HUNTRESS)
    notes = page.get_by_role("region", name="What everybody knows")
    for number in range(4):
        going_on = await _turn(page, number)
        await expect(notes).to_contain_text("The Monster hid in the")
        if not going_on or await page.locator(".final h2").is_visible():
            break
        assert await page.locator(".figure.monster").count() == 0
    assert await page.locator(".square .mark").count() > 0


async def test_the_monster_may_feint_and_is_told_what_the_others_learn_of_it(opened: Open) -> None:
    page = await opened(viewport=PHONE)
    await _begin(page, _MONSTER)
    feint, end = page.get_by_role("button", name="Feint…"), page.locator(".final h2")
    assert await _turn(page, 0)
    assert await _turn(page, 0)
    await expect(feint.or_(end).first).to_be_visible()
    if await end.is_visible():
        pytest.skip("the Huntress struck in her second turn")
    await feint.click()
    await expect(page.locator(".prompt")).to_contain_text("You tell that you are on dark")
    await expect(page.locator(".square.playable")).to_have_count(5)
    assert await fits(page)
    await page.locator(".square.playable").first.click()
    await expect(page.locator(".log")).to_contain_text("Before its feint the Monster was on dark")


async def test_it_can_be_played_by_keyboard_and_every_square_has_a_name(opened: Open) -> None:
    page = await opened()
    await _begin(page, _MONSTER)
    lair = page.get_by_role("button", name="Hide here: Dark square 7, faces lit square 5")
    await lair.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("img", name=re.compile("^Dark square 7, the Monster, faces"))).to_be_visible()
    await expect(page.locator(".square.playable").first).to_be_visible()
    names = await page.locator(".square").evaluate_all("squares => squares.map((each) => each.ariaLabel)")
    assert len(set(names)) == 20
    await page.get_by_role("button", name="Rules", exact=True).click()
    for number in range(1, 17):
        if number not in (7, 13):  # told with the rules before them
            await expect(page.get_by_role("dialog")).to_contain_text(f"DN-{number:02}")
