"""The pictures of the README: ``make campaign-screenshots``.

Writes the report of the system call of the shipped kernel, opens it in headless Chromium, and
photographs two parts of it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.testing.harness import build
from tests.testing.wcet.browser import chromium
from wcet.cli import main as wcet

__all__ = ["main"]

KERNEL = build.ROOT / "build/bilby/kzm-after/kernel.elf"
DOCS = build.ROOT / "docs"
SOURCES = build.ROOT / "kernels/bilby"
SETTLED = 1.0  # seconds
SEARCHED = "cspace_resolve"
LARGEST = 150_000  # bytes of a picture
SEARCH = """
const field = document.querySelector('.tools input');
field.value = arguments[0];
field.dispatchEvent(new Event('input'));
[...document.querySelectorAll('button')].find((one) => one.textContent === 'Next').click();
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        report = folder / "report.html"
        asked = ["--entry", "syscall", "--quiet", "--source-dir", str(SOURCES)]
        assert wcet(["analyse", str(KERNEL), *asked, "--html", str(report)]) == 0
        with chromium(folder / "light", 1100, 820) as browser:
            browser.get(f"{report.as_uri()}#/path/0/0")
            time.sleep(SETTLED)
            browser.execute_script(SEARCH, SEARCHED)
            time.sleep(SETTLED)
            (DOCS / "report-path.png").write_bytes(browser.get_screenshot_as_png())
        with chromium(folder / "dark", 1100, 820, theme="dark") as browser:
            browser.get(f"{report.as_uri()}#/code/0/0")
            time.sleep(SETTLED)
            (DOCS / "report-function.png").write_bytes(browser.get_screenshot_as_png())
    for picture in DOCS.glob("report-*.png"):
        size = picture.stat().st_size
        assert size < LARGEST, f"{picture} has {size} bytes"
        print(f"{picture.relative_to(build.ROOT)}: {size:,} bytes")


if __name__ == "__main__":
    main()
