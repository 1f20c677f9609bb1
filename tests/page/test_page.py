"""The page as people use it, in a real browser."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, WebSocket, expect

from deploy.local import Local
from gateway import site
from tests.page.conftest import PHONE, Open, fits

_SECONDS = 30.0
_NIGHT_CLAN_PLAYS = 13


async def _play_night_clan(page: Page) -> None:
    """Starts a match against a bot from the first screen."""
    await page.get_by_role("button", name="Play Night Clan against bots").click()
    await page.get_by_role("button", name="Keep this hand").click()


async def _one_play(page: Page) -> bool:
    """Plays the first card to the first Location that takes it; False when the match is over."""
    card, end = page.locator(".hand .card.playable").first, page.locator(".final h2")
    await expect(card.or_(end).first).to_be_visible(timeout=_SECONDS * 1000)
    if await end.is_visible():
        return False
    plays = page.locator(".log li").filter(has_text=re.compile("^.{4,6}You played"))
    before = await plays.count()
    await card.click()
    await page.locator(".here").first.click(position={"x": 12, "y": 12})
    alone = page.get_by_role("button", name="Move no card")
    await expect(alone.or_(plays.nth(before)).or_(end).first).to_be_visible()
    if await alone.is_visible():
        await alone.click()
    await expect(plays.nth(before)).to_be_attached()
    return True


async def _to_the_end(page: Page) -> int:
    played = 0
    while await _one_play(page):
        played += 1
    return played


async def test_a_match_against_a_bot_is_played_from_the_first_click_to_the_last_point_and_replayed(opened: Open) -> None:
    page = await opened()
    await _play_night_clan(page)
    assert await _to_the_end(page) == _NIGHT_CLAN_PLAYS
    await expect(page.locator(".final h2")).to_have_text(re.compile("wins?|share"))
    for _ in range(3):
        await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".scoring h3")).to_have_text("Scoring 4 of 4: Old Castle")
    sums = await page.locator(".scoring tbody td:last-child").all_inner_texts()
    notes = await page.locator(".person .who .quiet").all_inner_texts()
    assert [f"{each} point{'' if each == '1' else 's'}" for each in sums] == notes

    await page.get_by_role("link", name="Replay").click()
    slider, step = page.get_by_role("slider", name="Move"), 0
    while not await page.locator(".spaces .card").count():  # first come the hands that are kept, and any that are drawn anew
        step += 1
        await slider.press("ArrowRight")
        await expect(page.locator(".stepper .count")).to_have_text(re.compile(f"^{step} /"))
    await expect(page.locator(".prompt")).to_have_text(re.compile("played"))
    assert await page.locator(".spaces .card").count() == 1
    await page.get_by_role("button", name="To the end").click()
    assert await page.locator(".spaces .card").count() == 26
    await expect(page.locator(".scoring")).to_be_visible()
    assert await page.locator(".person .who .quiet").all_inner_texts() == notes
    # The last move, and no more of how it came out: that stands in the box.
    await expect(page.locator(".prompt")).to_have_text(re.compile(r"^[^.]*played[^.]*\.$"))


@pytest.mark.parametrize("link", ["#/constructor/x", "#/__proto__/x", "#/toString/x", "#/nowhere/at-all", "#/room", "#//"])
async def test_a_link_to_nowhere_leads_to_the_games_and_breaks_nothing(opened: Open, link: str) -> None:
    page = await opened(link)
    await expect(page.get_by_role("heading", name="Four games")).to_be_visible()
    await page.goto(f"{page.url.partition('#')[0]}#/room/ABCDEF")
    await expect(page.get_by_role("heading", name="You are invited")).to_be_visible()
    await page.goto(f"{page.url.partition('#')[0]}#/")
    await expect(page.get_by_role("heading", name="Four games")).to_be_visible()


async def test_a_match_of_four_in_clans_and_glory_is_played_and_its_scoring_adds_up(opened: Open) -> None:
    page = await opened(viewport=PHONE)
    tile = page.get_by_role("article", name="Clans and Glory")
    await tile.locator("summary").click()
    await tile.get_by_label("Players").select_option("4")
    await tile.get_by_role("button", name="Play Clans and Glory against bots").click()
    card, end = page.locator(".hand .card.playable").first, page.locator(".final h2")
    mine = page.locator(".log li span").filter(has_text=re.compile("^You played"))
    for played in range(8):
        await expect(card.or_(end).first).to_be_visible(timeout=_SECONDS * 1000)
        if await end.is_visible():
            break
        await card.click()
        await page.locator(".space.playable").last.click()
        shield = page.get_by_role("button", name="With a shield")
        await expect(shield.or_(mine.nth(played)).first).to_be_attached()
        if await shield.is_visible():
            await shield.click()
        await expect(mine.nth(played)).to_be_attached()
    await expect(end).to_be_visible(timeout=_SECONDS * 1000)
    for field in range(2, 7):
        await page.get_by_role("button", name="Next").click()
        await expect(page.locator(".scoring h3")).to_have_text(f"Scoring {field} of 6: field {field}")
    sums = await page.locator(".scoring tbody td:last-child").all_inner_texts()
    assert [f"{each} points" for each in sums] == await page.locator(".person .who .quiet").all_inner_texts()


async def test_a_phone_shows_all_of_it_without_scrolling_sideways(opened: Open) -> None:
    page = await opened(viewport=PHONE, has_touch=True, color_scheme="light")
    assert await fits(page)
    await page.locator(".tile summary").first.click()
    await page.get_by_label("Players").first.select_option("4")
    assert await fits(page)
    await _play_night_clan(page)
    assert await fits(page)
    assert await _one_play(page)
    assert await fits(page)
    small = await page.evaluate(
        """() => [...document.querySelectorAll("button, a.button, select, input:not([type=checkbox])")]
            .map((each) => [each.textContent, each.getBoundingClientRect()])
            .filter(([, { width, height }]) => width && (width < 43.5 || height < 43.5)).map(([text]) => text)"""
    )
    assert not small


async def test_a_match_is_played_by_keyboard_alone(opened: Open) -> None:
    page = await opened()

    async def tab_to(selector: str) -> None:
        for _ in range(60):
            await page.keyboard.press("Tab")
            if await page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    await tab_to("[aria-label='Play Night Clan against bots']")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Keep this hand")).to_be_visible()
    await tab_to(".choices .primary")
    await page.keyboard.press("Space")
    await expect(page.locator(".hand .card.playable").first).to_be_visible()
    await tab_to(".hand .card")
    await page.keyboard.press("Enter")
    focused = page.locator(":focus")
    await expect(focused).to_have_attribute("aria-pressed", "true")
    for _ in range(30):
        await page.keyboard.press("Shift+Tab")
        if await focused.evaluate("(each) => each.matches('.here')"):
            break
    await expect(focused).to_have_accessible_name(re.compile("^Play .+ at .+$"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".log li, .choices .primary").filter(has_text=re.compile("You played|Move no card")).first).to_be_visible()


async def test_everything_that_can_be_used_has_a_name(opened: Open) -> None:
    page = await opened()
    await _play_night_clan(page)
    await page.locator(".hand .card.playable").first.click()
    nameless = await page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, [role=img]")].filter((each) => !(each.ariaLabel ||
            each.textContent.trim() || each.labels?.length)).map((each) => each.outerHTML)"""
    )
    assert not nameless
    for role, name in (("main", None), ("region", "Board"), ("log", "What happened"), ("list", "Players"), ("complementary", "The match")):
        await expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]
    assert await page.evaluate("document.documentElement.lang") == "en"


async def test_two_people_meet_in_a_room_by_its_link_play_and_are_seen_by_a_third(opened: Open) -> None:
    ann, bob = await opened(), await opened(viewport=PHONE)
    await ann.get_by_label("Your name").fill("Ann")
    await ann.get_by_role("button", name="Sign in").click()
    await expect(ann.locator(".who")).to_contain_text("Ann")
    await ann.get_by_role("button", name="With friends").first.click()
    link = await ann.get_by_label("Link to share").input_value()
    await bob.goto(link)
    await bob.get_by_label("Your name").fill("Bob <b>")
    await bob.get_by_role("button", name="Come in").click()
    await expect(ann.get_by_role("list", name="Who is here")).to_contain_text("Bob <b>")
    await bob.get_by_role("button", name="I am ready").click()
    ready = ann.get_by_role("button", name="I am ready")
    start = ann.get_by_role("button", name="Start")
    await expect(ready.or_(start).first).to_be_visible()
    if await ready.is_visible():
        await ready.click()
    await start.click()
    for page in (ann, bob):
        await page.get_by_role("button", name="Keep this hand").click()
    eve = await opened(f"#/match/{ann.url.rpartition('/')[2]}")
    await eve.get_by_role("button", name="Come in").click()
    await expect(eve.get_by_role("heading", level=1)).to_contain_text("watching")
    first = ann if await ann.locator(".prompt.mine").count() else bob
    while not await first.locator(".prompt.mine").count():
        await asyncio.sleep(0.05)
        first = ann if await ann.locator(".prompt.mine").count() else bob
    assert await _one_play(first)
    name = "Ann" if first is ann else "Bob <b>"
    for page in (bob if first is ann else ann, eve):
        await expect(page.locator(".log")).to_contain_text(f"{name} played")
    assert await eve.locator(".hand").count() == 0


async def test_whoever_looks_for_opponents_is_told_what_is_waited_for_and_is_matched(opened: Open) -> None:
    ann, bob = await opened(), await opened()
    await ann.get_by_role("button", name="Find opponents").first.click()
    await expect(ann.locator(".find .waits")).to_have_text(re.compile(r"\w+ \w+"))
    await ann.get_by_role("button", name="Cancel").click()
    await expect(ann.get_by_role("list", name="Games")).to_be_visible()
    for page in (ann, bob):
        await page.get_by_role("button", name="Find opponents").first.click()
    for page in (ann, bob):
        await expect(page.get_by_role("button", name="Keep this hand")).to_be_visible(timeout=_SECONDS * 1000)
    assert ann.url == bob.url


async def test_a_match_goes_on_where_it_was_after_the_gateway_was_killed(opened: Open, served: Local) -> None:
    page = await opened()
    await _play_night_clan(page)
    assert await _one_play(page)
    # It is told what may be played next before the line is cut.
    await expect(page.locator(".hand .card.playable").first).to_be_visible()
    served.kill("gateway")
    try:
        await expect(page.locator("#notice")).to_contain_text("line is gone")
        await page.locator(".hand .card.playable").first.click()
        await page.locator(".here").first.click(position={"x": 12, "y": 12})
        alone = page.get_by_role("button", name="Move no card")
        if await alone.is_visible():
            await alone.click()
    finally:
        served.restart("gateway")
    await expect(page.locator("#notice")).to_contain_text("Connected again", timeout=_SECONDS * 1000)
    assert await _to_the_end(page) <= _NIGHT_CLAN_PLAYS - 1
    words = await page.locator(".log li span").all_inner_texts()
    assert sum(each.startswith("You played") for each in words) == _NIGHT_CLAN_PLAYS


async def test_a_page_that_was_offline_resumes_at_its_cursor(opened: Open) -> None:
    page = await opened()
    frames: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: frames.append(str(data))))
    await _play_night_clan(page)
    assert await _one_play(page)
    frames.clear()
    await page.context.set_offline(True)
    await expect(page.locator("#notice")).to_contain_text("line is gone")
    await page.context.set_offline(False)
    await expect(page.locator("#notice")).to_contain_text("Connected again", timeout=_SECONDS * 1000)
    assert any(re.search(r'"watch":\{"matchId":"[^"]+","after":"[^"]+"', frame) for frame in frames)
    assert await _one_play(page)


async def test_tokens_are_renewed_before_they_run_out_and_the_socket_stays(opened: Open, served: Local, tmp_path: Path) -> None:
    with Local(tmp_path, env={"REDIS_URL": "", "GLOAMING_ACCESS_TOKEN_SECONDS": "6"}) as brief:
        page = await opened()
        sent: list[str] = []
        sockets: list[str] = []

        def meet(socket: WebSocket) -> None:
            sockets.append(socket.url)
            socket.on("framesent", lambda data: sent.append(str(data)))

        page.on("websocket", meet)
        await page.goto(brief.url)
        await _play_night_clan(page)
        async with asyncio.timeout(_SECONDS):
            while sum('"authenticate"' in each for each in sent) < 2:
                await page.wait_for_timeout(100)
        assert await _one_play(page)
        assert len(sockets) == 1


@pytest.mark.parametrize(
    "kept",
    [
        "garbage",
        "5",
        '{"player": {"id": "x"}}',
        '{"player": {"id": "x", "name": "X"}, "accessToken": "of.another.server", "refreshToken": "y", "renewTime": 9e15}',
    ],
)
async def test_what_somebody_else_left_in_the_browser_is_no_session(opened: Open, kept: str) -> None:
    page = await opened()
    await page.evaluate("kept => localStorage.setItem('gloaming.session', kept)", kept)
    await page.reload()
    await expect(page.get_by_label("Your name")).to_be_visible()
    await _play_night_clan(page)


async def test_two_tabs_are_the_same_player_and_signing_out_in_one_ends_the_other(opened: Open, served: Local) -> None:
    page = await opened()
    await _play_night_clan(page)
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator(".person").filter(has_text="(you)")).to_have_count(1)
    assert await _one_play(other)
    await expect(page.locator(".log")).to_contain_text("You played")
    await other.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign out")).to_have_count(0)


async def test_whoever_resigns_has_lost_and_plays_again_with_the_same_bot(opened: Open) -> None:
    page = await opened()
    await _play_night_clan(page)
    assert await _one_play(page)
    await page.get_by_role("button", name="Resign").click()
    await page.get_by_role("dialog").get_by_role("button", name="Resign").click()
    await expect(page.locator(".final h2")).to_have_text("Bot wins by resignation")
    await expect(page.locator(".final")).not_to_contain_text("null")
    await page.get_by_role("button", name="Play again").click()
    await expect(page.get_by_role("button", name="Keep this hand")).to_be_visible()
    await page.get_by_role("link", name="Leave").click()
    await expect(page.locator(".mine li").filter(has_text="lost")).to_have_count(1)
    await expect(page.locator(".mine .live")).to_have_count(1)


async def test_the_rules_are_one_tap_away_and_the_colours_are_kept(opened: Open) -> None:
    page = await opened(color_scheme="dark")
    await page.get_by_role("button", name="Rules of Night Clan").click()
    await expect(page.get_by_role("dialog")).to_contain_text("NC-10")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="Light colours").click()
    await page.reload()
    assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


async def test_a_match_that_is_not_there_says_so(opened: Open) -> None:
    page = await opened("#/match/night_clan-zzzzzzzzzzzzzzzz")
    await page.get_by_role("button", name="Come in").click()
    await expect(page.get_by_role("main")).to_contain_text("no")
    await page.get_by_role("link", name="To the games").click()
    await expect(page.get_by_role("list", name="Games")).to_be_visible()


async def test_no_script_but_the_pages_own_runs(browser: Browser, served: Local) -> None:
    page = await browser.new_page()
    await page.goto(served.url)
    ran: Any = await page.evaluate(
        """() => { const script = document.createElement("script"); script.textContent = "window.ran = true"; document.body.append(script);
            return window.ran ?? false; }"""
    )
    assert ran is False


@pytest.mark.parametrize("path", ["/", *sorted(f"/web/{each.relative_to(site.FOLDER)}" for each in site.FOLDER.rglob("*.*"))])
async def test_every_file_of_the_page_is_served_under_its_policy(served: Local, path: str) -> None:
    async with httpx.AsyncClient(base_url=served.url, headers={"Accept-Encoding": "identity"}) as http:
        answer = await http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == site.POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        again = await http.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        zipped = await http.get(path, headers={"Accept-Encoding": "gzip"})
        assert zipped.headers["content-encoding"] == "gzip"
        assert zipped.headers["etag"] != answer.headers["etag"]
        assert zipped.content == answer.content


@pytest.mark.parametrize("path", ["/web/", "/web/nothing.js", "/web/../app.py", "/web/%2e%2e/app.py", "/web/games"])
async def test_nothing_else_is_served(served: Local, path: str) -> None:
    async with httpx.AsyncClient(base_url=served.url) as http:
        assert (await http.get(path)).status_code == 404


def test_the_page_is_small_on_the_wire_and_has_nothing_inline() -> None:
    files = [each for each in site.FOLDER.rglob("*") if each.is_file()]
    assert sum(len(gzip.compress(each.read_bytes())) for each in files) < 70_000
    index = (site.FOLDER / "index.html").read_text()
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", index)
    assert "http" not in index
