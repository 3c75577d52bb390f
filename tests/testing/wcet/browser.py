"""Headless Chromium for tests: pages, keys, screenshots, findings of axe, and its console."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.testing.programs import needs

__all__ = ["chromium", "console", "findings", "needs_chromium"]

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
PROGRAMS = ("chromium", "chromedriver")
AXE = "axe_core_python/axe.min.js"

needs_chromium = needs(*PROGRAMS)


@contextmanager
def chromium(
    profile: Path, width: int = 1280, height: int = 900, theme: str = "light"
) -> Iterator[webdriver.Chrome]:
    """A browser with a window of this size; ``profile`` is a folder of its own."""
    program, driver = map(shutil.which, PROGRAMS)
    assert program, "there is no chromium"
    assert driver, "there is no chromedriver"
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as browser:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": theme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        yield browser


def findings(browser: webdriver.Chrome) -> list[str]:
    """The findings of axe on the present page: serious and critical rules with an element."""
    axe = Path(str(distribution("axe-core-python").locate_file(AXE))).read_text("utf-8")
    browser.execute_script(f"if (!window.axe) {{ {axe} }}")
    found: list[dict[str, Any]] = browser.execute_async_script(
        "axe.run().then((result) => arguments[arguments.length - 1](result.violations))"
    )
    return [
        f"{rule['id']} ({rule['impact']}): {rule['nodes'][0]['html'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def console(browser: webdriver.Chrome) -> list[str]:
    """The page's new messages on the console, including warnings."""
    entries: list[dict[str, Any]] = browser.execute("getLog", {"type": "browser"})["value"]
    return [str(entry["message"]) for entry in entries]
