"""A browser, and all that the page needs behind it.

The browser is CHROMIUM_BIN's, or a Chromium or Chrome of the machine, or the one that `playwright install chromium` has put there; without
any of them the tests here are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from deploy.local import Local
from tests import unlimited

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 850}
# Under the load of a whole test run a match against bots takes its time.
PATIENCE_MS = 30_000

_OF_REQUESTS = ("Failed to load resource", "WebSocket connection to")
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

Open = Callable[..., Awaitable[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests here in one process, which starts everything once; their own, beside that of `tests/e2e`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("page"))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """Redis, each game's service and the gateway with the page. Bots move nearly at once, and nobody asks too much."""
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "20", **unlimited.ENVIRONMENT}
    with Local(tmp_path_factory.mktemp("page"), env=env) as local:
        yield local


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A Chromium."""
    async with async_playwright() as playwright:
        path = _found(playwright.chromium.executable_path)
        if path is None:
            pytest.skip("no Chromium here: install one, or name it in CHROMIUM_BIN, or run .venv/bin/python -m playwright install chromium")
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


def _found(own: str) -> str | None:
    """The browser to take; `own` is where Playwright puts its own."""
    return os.environ.get("CHROMIUM_BIN") or next(filter(None, map(shutil.which, (*_NAMES, own))), None)


@pytest.fixture
async def opened(browser: Browser, served: Local) -> AsyncIterator[Open]:
    """Opens the page as somebody of their own: `await opened("#/room/ABCDEF", viewport=PHONE)`. Afterwards nothing may have gone wrong.

    Whatever stands in the console as an error or a warning is wrong, every violation of its policy among it; but for what a browser says of
    requests that the server refuses or does not get.
    """
    wrong: list[str] = []
    pages: list[Page] = []

    def hear(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not said.text.startswith(_OF_REQUESTS):
            wrong.append(said.text)

    async def open_page(fragment: str = "", **options: Any) -> Page:
        context = await browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        pages.append(page)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", hear)
        await page.goto(f"{served.url}/{fragment}")
        return page

    yield open_page
    for page in pages:
        assert await fits(page), "the page is wider than the window"
    assert not wrong


async def fits(page: Page) -> bool:
    """Whether nothing makes the page wider than the window."""
    wide, window = await page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    return bool(wide <= window)
