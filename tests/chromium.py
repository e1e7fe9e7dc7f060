"""Debian's Chromium, headless and alone: a fresh profile, no network, everything it says noted."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import Factory, frozen
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "no chromium on PATH: the HTML report is not looked at in a browser"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a new, empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@frozen
class Tab:
    """An open page, and what went on in it that should not."""

    page: Page
    trouble: list[str] = Factory(list)
    """Console messages, errors, dialogs and requests beyond the file itself."""
    blocked: list[str] = Factory(list)
    """Why requests failed."""

    def opened(self, file: Path, fragment: str = "") -> Page:
        """The page with the file loaded."""
        self.page.goto(f"{file.as_uri()}{fragment}")
        return self.page

    def count(self, selector: str) -> int:
        """How many visible elements there are."""
        return self.page.locator(selector).filter(visible=True).count()


@contextmanager
def tab(browser: Browser, **settings: Any) -> Iterator[Tab]:
    """A tab in a context of its own (`viewport`, `color_scheme`, ...)."""
    context = browser.new_context(**settings)
    opened = Tab(context.new_page())
    note = opened.trouble.append

    def dismissed(dialog: Dialog) -> None:
        note(f"dialog: {dialog.message}")
        dialog.dismiss()

    opened.page.on("console", lambda message: note(f"console: {message.text}"))
    opened.page.on("pageerror", lambda error: note(f"error: {error}"))
    opened.page.on("dialog", dismissed)
    opened.page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else note(f"asks {request.url}"),
    )
    opened.page.on("requestfailed", lambda request: opened.blocked.append(str(request.failure)))
    try:
        yield opened
    finally:
        context.close()
