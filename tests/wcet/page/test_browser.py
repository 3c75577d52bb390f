"""The report of the shipped kernel as readers use it: in headless Chromium, offline."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait

from tests.testing.harness.cases import in_turn
from tests.testing.wcet.browser import chromium, console, findings, needs_chromium
from tests.testing.wcet.large_page import large_document
from wcet.page.write import page
from wcet.reports.loads import OFF, heat

pytestmark = [needs_chromium, pytest.mark.slow("reads reports in Chromium")]

LARGEST = 5 << 20  # bytes
SHOWN = ("address", "name")
SOONEST = 2000  # milliseconds until the page can be used
PARTS = [
    *("bounds", "path/0/0", "code/0/0", "calls/0/0", "loops", "caches/0", "assumptions"),
    *("comparison", "about"),
]


@pytest.fixture(scope="module")
def browser(kernel_page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield Browser(driver, kernel_page)


@pytest.fixture(scope="module")
def phone(kernel_page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("phone"), width=390, height=844) as driver:
        yield Browser(driver, kernel_page)


class Browser:
    """The page in a browser; each test begins at a part of it, and leaves the console empty."""

    def __init__(self, driver: webdriver.Chrome, file: Path) -> None:
        self.driver = driver
        driver.get(file.as_uri())

    def go(self, part: str) -> None:
        """Show a part, and wait until it is there."""
        self.driver.execute_script(f"location.hash = '#/about'; location.hash = '#/{part}'")
        current = '#tabs a[aria-current="page"]'
        name = part.partition("/")[0]
        self.wait(lambda: (self.one(current).get_attribute("href") or "").endswith(name))
        self.driver.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )

    def wait(self, condition: Any) -> None:
        replaced = [StaleElementReferenceException]  # between finding an element and reading it
        WebDriverWait(self.driver, 10, ignored_exceptions=replaced).until(lambda _: condition())

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self) -> str:
        return self.one("main").text

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)


@pytest.fixture(autouse=True)
def quiet(browser: Browser) -> Iterator[None]:
    yield
    assert console(browser.driver) == []


def test_it_is_small_and_opens_soon(browser: Browser, kernel_page: Path) -> None:
    assert kernel_page.stat().st_size < LARGEST
    times = [1.0 * SOONEST]
    for _ in range(3):  # others use the machine, too
        if min(times) < SOONEST:
            break
        browser.driver.get("about:blank")
        browser.driver.get(kernel_page.as_uri())
        ready = browser.driver.execute_script("return document.documentElement.dataset.ready")
        assert ready == "true"
        times.append(
            browser.driver.execute_script(
                "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
            )
        )
    assert min(times) < SOONEST


@pytest.mark.parametrize(("part", "theme"), in_turn(PARTS, ["light", "dark"]))
def test_axe_finds_nothing(browser: Browser, part: str, theme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.go(part)
    assert findings(browser.driver) == []
    back = browser.driver.execute_script("return getComputedStyle(document.documentElement).color")
    assert ("232" in back) == (theme == "dark")


def test_axe_sees_faults(browser: Browser) -> None:
    """The check itself can fail."""
    browser.go("bounds")
    script = "document.querySelector('main').append(document.createElement('select'))"
    browser.driver.execute_script(script)
    assert any("select-name" in text for text in findings(browser.driver))
    browser.go("about")


@pytest.mark.parametrize("part", PARTS)
def test_it_fits_a_phone(phone: Browser, part: str) -> None:
    phone.go(part)
    size = phone.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert size == [390, 390]
    assert findings(phone.driver) == []
    assert console(phone.driver) == []


def test_the_bounds_lead_to_the_paths(browser: Browser, kernel_data: dict[str, Any]) -> None:
    browser.go("bounds")
    for entry in kernel_data["entries"]:
        assert f"{entry['cycles']:,}" in browser.text()
    browser.driver.find_element(By.LINK_TEXT, "interrupt").click()
    browser.wait(lambda: "Worst path of interrupt" in browser.text())


def test_clicks_zoom_the_flame_graph(browser: Browser) -> None:
    browser.go("path/0/0")
    whole = browser.one('.frame[aria-level="1"]').size["width"]
    frame = next(f for f in browser.all(".frame") if f.text.startswith("syscall_receive"))
    before = frame.size["width"]
    frame.click()
    frame = next(f for f in browser.all(".frame") if f.text.startswith("syscall_receive"))
    assert before < 0.6 * whole
    assert frame.size["width"] > 0.95 * whole
    assert "syscall_receive called from " in browser.text()
    browser.driver.find_element(By.XPATH, "//button[text()='Show all']").click()
    assert "vector_svc" in browser.one("main section h3").text


def test_keys_move_in_the_flame_graph(browser: Browser) -> None:
    browser.go("path/0/0")
    browser.driver.execute_script("document.querySelector('.flame').focus()")
    seen = []
    for key in (Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER, Keys.ARROW_UP):
        browser.press(key)
        seen.append(browser.one("main section h3").text.partition(" ")[0])
    assert seen == [
        *("entry_svc", "handle_syscall", "reply_receive", "reply_receive", "handle_syscall"),
    ]
    browser.press(Keys.ESCAPE)
    assert browser.one("main section h3").text.startswith("vector_svc")
    active = browser.one(".flame").get_attribute("aria-activedescendant")
    assert active == browser.one('.frame[aria-selected="true"]').get_attribute("id")


def test_equal_calls_are_one_frame_in_the_left_heavy_view(browser: Browser) -> None:
    browser.go("path/0/0")
    frames = len(browser.all(".frame"))
    Select(browser.one(".tools label:nth-of-type(2) select")).select_by_value("heavy")
    merged = browser.all(".frame")
    assert 1 < len(merged) <= frames
    lefts: dict[str, list[tuple[float, float]]] = {}
    for frame in merged:
        rect = frame.rect
        lefts.setdefault(frame.get_attribute("aria-level") or "", []).append(
            (rect["x"], rect["width"])
        )
    assert [width for _, width in sorted(lefts["2"])] == sorted(
        (width for _, width in lefts["2"]), reverse=True
    )


def test_a_sandwich_has_callers_and_callees(browser: Browser, kernel_data: dict[str, Any]) -> None:
    """A function has the cycles that the table of calls shows."""
    browser.go("path/0/0")
    Select(browser.one(".tools label:nth-of-type(2) select")).select_by_value("sandwich")
    Select(browser.one(".tools label:nth-of-type(3) select")).select_by_visible_text(
        "cspace_resolve"
    )
    assert [head.text for head in browser.all("main h3")][:2] == ["Callers", "Callees"]
    first = [f.get_attribute("title") for f in browser.all('.frame[aria-level="1"]')]
    assert len(first) == 2
    assert first[0] == first[1]
    assert (first[0] or "").startswith("cspace_resolve: ")
    browser.go("calls/0/0")
    row = next(r for r in browser.all(".row") if "cspace_resolve  <" in r.text)
    assert (first[0] or "").split()[1] == row.text.split()[0]


def test_colours_tell_functions_apart(browser: Browser) -> None:
    browser.go("path/0/0")
    colour = browser.one(".tools label:nth-of-type(4) select")
    for kind in ("cause", "function"):
        Select(colour).select_by_value(kind)
        assert findings(browser.driver) == []
    styles = {f.value_of_css_property("background-color") for f in browser.all(".frame")}
    assert len(styles) > 2


def test_the_first_page_has_the_costliest_functions(
    browser: Browser, kernel_data: dict[str, Any]
) -> None:
    browser.go("bounds")
    text = browser.text()
    assert "Where the cycles go" in text
    for entry in kernel_data["entries"]:
        loads = {fn: sum(block[2] for block in load) for fn, load, *_ in entry["paths"][0]["loads"]}
        assert f"{max(loads.values()):,}" in text
    assert "change" in text


def test_a_search_sums_up_what_it_finds(browser: Browser, kernel_data: dict[str, Any]) -> None:
    browser.go("path/0/0")
    browser.one(".tools input").send_keys("cspace_resolve")
    path = kernel_data["entries"][0]["paths"][0]
    of = next(f["address"] for f in kernel_data["functions"] if f["name"] == "cspace_resolve")
    cycles = sum(sum(row[7]) for row in path["rows"] if row[1] == of)
    assert f"{cycles:,} cycles" in browser.one(".tools").text
    assert browser.all(".frame.found")
    assert findings(browser.driver) == []
    browser.driver.find_element(By.XPATH, "//button[text()='Next']").click()
    assert browser.one("main section h3").text.startswith("cspace_resolve")


def test_source_stands_beside_instructions(browser: Browser) -> None:
    browser.go("code/0/0")
    assert browser.text().startswith("Function cspace_resolve")
    source, code = browser.all('.list[aria-label$="cspace_resolve"]')
    assert code.find_elements(By.CSS_SELECTOR, ".row.marked")
    row = next(r for r in source.find_elements(By.CSS_SELECTOR, ".row") if "×" in r.text)
    cycles = row.text.split()[0]
    row.click()
    assert cycles in source.find_element(By.CSS_SELECTOR, ".row.marked").text
    source.send_keys(Keys.HOME)
    assert "resolve.h" in source.text
    code.send_keys(Keys.HOME, Keys.ARROW_DOWN)
    chosen = code.find_element(By.CSS_SELECTOR, '[aria-selected="true"]')
    assert chosen.get_attribute("id") == code.get_attribute("aria-activedescendant")


def test_a_function_is_found_and_its_blocks_lead_to_the_code(browser: Browser) -> None:
    browser.go("code/0/0")
    browser.one('input[aria-label="Search: Functions"]').send_keys("message_tr")
    listed = browser.one('.list[aria-label="Functions"]')
    listed.send_keys(Keys.HOME, Keys.ENTER)
    browser.wait(lambda: browser.text().startswith("Function message_transfer"))
    drawn = browser.one(".drawing")
    assert re.search(r"loop: at most \d+", drawn.text)
    assert drawn.find_elements(By.CSS_SELECTOR, ".edge.path")
    block = next(b for b in drawn.find_elements(By.CSS_SELECTOR, ".block") if "loop:" in b.text)
    browser.driver.execute_script("arguments[0].focus()", block)
    block.send_keys(Keys.ENTER)
    chosen = browser.one('.list[aria-label^="Instructions"] [aria-selected="true"]').text
    assert block.text[2:10] in chosen


def test_the_call_graph_leads_to_functions(browser: Browser) -> None:
    browser.go("calls/0/0")
    few = len(browser.all(".drawing .block"))
    Select(browser.all("main select")[1]).select_by_visible_text("0 %")
    assert len(browser.all(".drawing .block")) > few
    assert not browser.all(".drawing .block.off")
    Select(browser.all("main select")[1]).select_by_visible_text("all, on the path or not")
    assert browser.all(".drawing .block.off")
    assert findings(browser.driver) == []
    block = next(b for b in browser.all(".block") if "cspace_resolve" in b.text)
    browser.driver.execute_script("arguments[0].focus()", block)
    block.send_keys(Keys.ENTER)
    browser.wait(lambda: browser.text().startswith("Function cspace_resolve"))


def test_loops_show_their_evidence(browser: Browser) -> None:
    browser.go("loops")
    browser.one('input[aria-label="Search: Loops"]').send_keys("resolve.h:43")
    browser.one('.list[aria-label="Loops"]').send_keys(Keys.HOME, Keys.ENTER)
    assert "At most 32 executions of its header" in browser.text()
    assert "count <= 32 is an invariant" in browser.text()
    browser.driver.find_element(By.PARTIAL_LINK_TEXT, "assumption ").click()
    browser.wait(lambda: "Every bound rests on these" in browser.text())
    assert "S1" in browser.driver.switch_to.active_element.text


def test_a_set_of_a_cache_shows_its_lines(browser: Browser) -> None:
    browser.go("caches/0")
    cell = max(browser.all(".sets button"), key=lambda cell: int(cell.text or 0))
    lines = int(cell.text)
    cell.click()
    assert cell.get_attribute("aria-pressed") == "true"
    assert len(browser.all("main tbody tr")) == lines
    browser.one("main tbody a").click()
    browser.wait(lambda: browser.text().startswith("Function "))


def test_assumptions_lead_to_the_code(browser: Browser) -> None:
    browser.go("assumptions")
    found = re.search(r"0x([0-9a-f]{8}) <(syscall_invoke)\+", browser.text())
    assert found is not None
    browser.driver.find_element(By.LINK_TEXT, f"0x{found[1]}").click()
    browser.wait(lambda: browser.text().startswith("Function syscall_invoke"))
    chosen = browser.one('.list[aria-label^="Instructions"] [aria-selected="true"]')
    assert found[1] in chosen.text


def test_back_and_forward_work(browser: Browser) -> None:
    browser.go("bounds")
    browser.go("loops")
    browser.driver.back()
    browser.driver.back()
    browser.wait(lambda: browser.text().startswith("Bounds"))
    browser.driver.forward()
    browser.driver.forward()
    browser.wait(lambda: browser.text().startswith("Loops"))


def test_every_part_is_reached_with_keys_alone(browser: Browser) -> None:
    browser.go("bounds")
    browser.one("#tabs a").send_keys("")
    names = [a.text for a in browser.all("#tabs a")]
    reached = []
    for number, name in enumerate(names):
        browser.driver.execute_script("document.querySelector('.skip').focus()")
        browser.press(*[Keys.TAB] * (number + 1))
        browser.press(Keys.ENTER)
        browser.wait(lambda wanted=name: browser.one('#tabs [aria-current="page"]').text == wanted)
        reached.append(name)
    assert reached == names


def test_a_picture_is_not_empty(browser: Browser, tmp_path: Path) -> None:
    """The flame graph has its colours on the screen."""
    browser.go("path/0/0")
    drawn = {f.value_of_css_property("background-color") for f in browser.all(".frame")}
    assert "rgba(166, 227, 161, 1)" in drawn
    assert browser.driver.get_screenshot_as_png()[:4] == b"\x89PNG"


def test_blocks_have_the_colours_of_other_drawings(
    browser: Browser, kernel_data: dict[str, Any]
) -> None:
    """The scripts and ``wcet cfg --svg`` colour the same."""
    browser.go("code/0/0")
    load = max(kernel_data["entries"][0]["paths"][0]["loads"], key=lambda one: sum(cycles(one)))
    most = max(cycles(load))
    wanted = {str(address): heat(cycles, most) for address, _, cycles in load[1]}
    for block in browser.all(".drawing .block"):
        fill = block.find_element(By.CSS_SELECTOR, "rect").get_attribute("fill")
        assert fill == wanted.get(block.get_attribute("data-id") or "", OFF)


def cycles(load: list[Any]) -> list[int]:
    """Cycles of the blocks of a function."""
    return [spent for _, _, spent in load[1]]


SLOWEST = 5.0  # seconds until a part of a very large page is drawn, on a machine that is shared
MOST_ELEMENTS = 8000


def test_a_hundred_thousand_blocks_do_not_freeze_it(
    browser: Browser, kernel_page: Path, tmp_path: Path
) -> None:
    file = tmp_path / "large.html"
    file.write_text(page(large_document(100_000)))
    parts = ["bounds", "path/0/0", "code/0/0", "calls/0/0", "loops", "assumptions", "about"]
    slow = dict.fromkeys(parts, SLOWEST)
    for _ in range(3):  # others use the machine, too
        if not slow:
            break
        browser.driver.get("about:blank")
        browser.driver.get(file.as_uri())
        for part in tuple(slow):
            start = time.monotonic()
            browser.go(part)
            if time.monotonic() - start < SLOWEST:
                del slow[part]
            assert len(browser.all("*")) < MOST_ELEMENTS, part
    assert not slow
    browser.go("path/0/0")
    frame = browser.all('.frame[aria-level="4"]')[0]
    start = time.monotonic()
    frame.click()
    browser.one(".tools input").send_keys("function_77")
    assert browser.all(".frame.found")
    assert time.monotonic() - start < SLOWEST
    browser.driver.get(kernel_page.as_uri())


def test_notes_stand_at_their_functions(
    browser: Browser, kernel_data: dict[str, Any], kernel_page: Path, tmp_path: Path
) -> None:
    """The first page names the functions only."""
    document = json.loads(json.dumps(kernel_data))
    function, other = document["functions"][3:5]
    evidence = "never returns: {:#x} <{}>: it loops for ever".format(*map(function.get, SHOWN))
    for entry in document["entries"]:
        entry["never_returning"] = [evidence.partition(": ")[2]]
        entry["proved"] = []
    file = tmp_path / "notes.html"
    file.write_text(page(document))
    browser.driver.get(file.as_uri())
    browser.go("bounds")
    assert "it loops for ever" not in browser.text()
    assert f"Notes on functions: {function['name']}." in browser.text()
    browser.go(f"code/0/0/{function['address']}")
    assert browser.text().count(f"it {evidence}") == 1
    browser.go(f"code/0/0/{other['address']}")
    assert "it loops for ever" not in browser.text()
    browser.driver.get(kernel_page.as_uri())


HOSTILE = "</script><img src=x onerror=document.title='broken'><b id=hostile>"


def test_hostile_names_are_text(
    browser: Browser, kernel_data: dict[str, Any], kernel_page: Path, tmp_path: Path
) -> None:
    document = json.loads(json.dumps(kernel_data))
    for function in document["functions"]:
        function["name"] = HOSTILE
        function["blocks"][0]["code"][0][1] = HOSTILE
    for one in (*document["loops"], *document["assumptions"]):
        one["place"] = one["text"] = one["evidence"] = HOSTILE
    line = {"cycles": 5, "function": HOSTILE, "place": HOSTILE, "text": HOSTILE, "runs": [None, 1]}
    document["comparison"]["entries"][0]["lines"] = [line]
    document["files"][0]["lines"] = [[n, HOSTILE] for n, _ in document["files"][0]["lines"]]
    file = tmp_path / "hostile.html"
    file.write_text(page(document))
    browser.driver.get(file.as_uri())
    for part in PARTS:
        browser.go(part)
        assert not browser.all("#hostile, main img")
        assert "broken" not in browser.driver.title
    browser.go("loops")
    assert HOSTILE in browser.text()
    browser.driver.get(kernel_page.as_uri())
