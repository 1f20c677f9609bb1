"""Night Knight on the page, in a real browser."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.page.conftest import PATIENCE_MS, PHONE, Open, fits

_MATCH_MS = 6 * PATIENCE_MS


async def _begin(page: Page, players: str, **options: str) -> None:
    """Starts a match against bots from the first screen. `options` are fields of its form by their labels."""
    tile = page.get_by_role("article", name="Night Knight")
    await tile.locator("summary").click()
    await tile.get_by_label("Players").select_option(players)
    for label, value in options.items():
        await tile.get_by_label(label.replace("_", " ")).fill(value)
    await tile.get_by_role("button", name="Play Night Knight against bots").click()


async def _as_soon_as(page: Page, selector: str, *keys: str, once: bool = True) -> None:
    """Presses keys the moment that something is there, faster than bots; from inside of the page, as there is no time to come from here."""
    await page.evaluate(
        """([selector, keys, once]) => {
            const look = () => {
                if (!document.querySelector(selector)) return;
                if (once) watching.disconnect();
                for (const key of keys) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            };
            const watching = new MutationObserver(look);
            watching.observe(document.body, { childList: true, subtree: true });
            look();
        }""",
        [selector, keys, once],
    )


async def test_a_whole_match_is_played_to_its_end_and_replayed(opened: Open) -> None:
    page = await opened()
    await _begin(page, "5", Time_to_react="500", Countdown="100", Your_own_card="0")
    await _as_soon_as(page, ".pillow.playable", " ", "1", once=False)
    await expect(page.locator(".final h2")).to_have_text(re.compile("win"), timeout=_MATCH_MS)
    await expect(page.locator(".scoring h3")).to_have_text(re.compile(r"^The end, 1 of 2: round \d+, the last$"))
    await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".scoring")).to_contain_text("got rid of every card")
    await expect(page.locator(".log")).to_contain_text(re.compile("You (threw|held|slept|reached|touched)"))
    notes = await page.locator(".places .quiet").all_inner_texts()
    assert notes[0] == "no card left"
    assert len(notes) == 5
    # What the events told is what the server says: nothing was lost on the way.
    piles = await page.locator(".pile").all_inner_texts()
    await page.get_by_role("link", name="Replay").click()
    await expect(page.locator(".stepper")).to_be_visible()
    assert await page.locator(".pile").all_inner_texts() == ["8"] * 5
    await page.get_by_role("button", name="To the end").click()
    await expect(page.locator(".final")).to_be_visible()
    assert await page.locator(".pile").all_inner_texts() == piles


async def test_space_grabs_the_pillow_and_the_round_tells_who_was_first_and_why(opened: Open) -> None:
    page = await opened(viewport=PHONE)
    # Whoever grabs before the own card is seen has but touched the pillow (NK-11).
    await _begin(page, "3", Your_own_card="2000", Countdown="1500")
    await _as_soon_as(page, ".pillow.playable", " ")
    await expect(page.locator(".pillow")).to_be_visible()
    assert await page.evaluate("document.querySelector('.pillow').offsetWidth") >= 120
    await expect(page.locator(".seat.me .badge")).to_have_text(re.compile("sent…|touched|✗ wrong"), timeout=PATIENCE_MS)
    race = page.locator(".race")
    await expect(race).to_contain_text("Round 1")
    mine = race.locator("li").filter(has_text="You touched a pillow")
    await expect(mine).to_contain_text(re.compile(r"Received after \d+ ms; the line takes \d+ ms"))
    await expect(mine).to_contain_text(re.compile("wrong .*NK-11"))
    # Whoever presses within the line's own time counts from before the reveal.
    await expect(mine.locator(".time b")).to_have_text(re.compile(r"^-?\d+ ms$"))
    await expect(race.locator(".delay")).to_contain_text(
        re.compile(r"\d+ ms as this page measures it, \d+ ms as the server did for round 1")
    )
    await expect(page.locator(".log")).to_contain_text("You touched a pillow")
    assert await fits(page)


async def test_hands_off_is_a_button_and_a_key_and_a_look_too_early_costs_the_round(opened: Open) -> None:
    page = await opened(viewport=PHONE, has_touch=True)
    await _begin(page, "6", Countdown="1500")
    await page.get_by_role("button", name="Peek at your card").tap()
    await expect(page.locator(".log")).to_contain_text("You looked at a card too early, and are out for the round.")
    assert await fits(page)
    await expect(page.locator(".seat.me .badge")).to_have_text(re.compile("peeked: out|✗ wrong"))
    await _as_soon_as(page, ".hands-off.playable", "0")
    await expect(page.locator(".log")).to_contain_text("You kept hands off", timeout=PATIENCE_MS)


async def test_an_attacker_throws_at_whom_is_tapped(opened: Open) -> None:
    page = await opened()
    await _begin(page, "4", Countdown="800")
    await _as_soon_as(page, "button.seat.playable[aria-label^='Throw at ']", "1")
    thrown = page.locator(".log li").filter(has_text=re.compile("You (threw a pillow|reached for a pillow to throw) at"))
    await expect(thrown).to_have_count(1, timeout=_MATCH_MS)


async def test_everything_has_a_name_and_the_rules_are_there(opened: Open) -> None:
    page = await opened()
    await _begin(page, "3", Countdown="3000")
    await expect(page.get_by_role("group", name="Round 1")).to_be_visible()
    await expect(page.get_by_role("button", name="1 pillow in the middle")).to_be_disabled()
    names = await page.locator(".seat").evaluate_all("seats => seats.map((each) => each.ariaLabel)")
    assert names[0] == "You, card not shown, 12 cards"
    assert len(set(names)) == 3
    await page.get_by_role("button", name="Rules", exact=True).click()
    for rule in ("NK-05", "NK-06", "NK-07", "NK-08", "NK-09", "NK-19"):
        await expect(page.get_by_role("dialog")).to_contain_text(rule)
