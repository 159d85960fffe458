"""The live page in a browser: the system's Chromium, driven by Playwright. Run by `make test-integration`."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.server.world import TRAFFIC, Feeder, Server, serving

from windrow.server.access import AccessTokens
from windrow.server.service import Caller

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("state"), TRAFFIC) as found:
        feeder = Feeder(found.windrow, 400)
        feeder.start()
        yield found
        feeder.is_over = True
        feeder.join(10)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, and fails for whatever a page complains of."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(url: str, *, scheme: str = "light", width: int = 1280, quiet: bool = True) -> Page:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        if quiet:
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _number(page: Page, selector: str) -> int:
    found = re.sub(r"\D", "", page.locator(selector).first.inner_text())
    return int(found or 0)


def _until(check: Callable[[], bool], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.1)


def test_home_shows_streams_queries_and_epochs_and_moves(server: Server, opened: Callable[..., Page]) -> None:
    page = opened(f"{server.url}/#/")
    page.wait_for_selector("article[data-query=average_speed] canvas")
    assert page.locator("#queries article").count() == 4
    assert page.locator(".stream b").all_inner_texts() == ["traffic", "incidents"]
    page.wait_for_selector(".parts rect.read")
    before = _number(page, "#facts b")
    _until(lambda: _number(page, "#facts b") > before + 3)
    chips = page.locator("article[data-query=past_hour] .chip", has_text="answers")
    answered = int(re.sub(r"\D", "", chips.inner_text()))
    _until(lambda: int(re.sub(r"\D", "", chips.inner_text())) > answered)


def test_charts_say_values_on_hover(server: Server, opened: Callable[..., Page]) -> None:
    page = opened(f"{server.url}/#/")
    box = page.locator("article[data-query=past_hour] .u-over")
    box.wait_for()
    _until(lambda: len(server.service.page("past_hour", None, None, 100)[1]) > 2)
    box.hover()
    page.wait_for_selector("article[data-query=past_hour] .tip:not([hidden])")
    assert "at 00:" in page.locator("article[data-query=past_hour] .tip").inner_text()


def test_a_query_page_has_chart_plan_window_and_answers(server: Server, opened: Callable[..., Page]) -> None:
    _until(lambda: bool(server.service.page("average_speed", None, None, 1)[1]), 60)
    page = opened(f"{server.url}/#/query/average_speed")
    page.wait_for_selector(".chart.tall canvas")
    page.wait_for_selector(".plan .node")
    page.locator(".plan .node").nth(2).hover()
    assert "state" in page.locator(".plan .why").inner_text()
    assert page.locator(".plan .edge.WKS").count() == 1
    assert page.locator(".picture canvas").count() == 1
    page.wait_for_selector("[aria-label='Answers as a table'] td")
    assert page.locator("[aria-label='Answers as a table'] th").all_inner_texts() == [
        "at",
        "segment",
        "speed",
        "readings",
    ]
    page.get_by_role("button", name="Pause").click()
    assert page.get_by_role("button", name="Go on").get_attribute("aria-pressed") == "true"
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    assert Path(waiting.value.path()).read_text().startswith('"at","segment"')


def test_the_chart_zooms_and_comes_back(server: Server, opened: Callable[..., Page]) -> None:
    page = opened(f"{server.url}/#/query/past_hour")
    over = page.locator(".chart.tall .u-over")
    over.wait_for()
    _until(lambda: len(server.service.page("past_hour", None, None, 100)[1]) > 5)
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60, steps=4)
    page.mouse.up()
    whole = page.get_by_role("button", name="Whole")
    whole.wait_for()
    whole.click()
    whole.wait_for(state="hidden")


def _type(page: Page, text: str) -> None:
    page.wait_for_selector(".CodeMirror")
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", text)


def test_errors_are_underlined_at_their_place_with_the_hint(
    server: Server, opened: Callable[..., Page]
) -> None:
    page = opened(f"{server.url}/#/console", quiet=False)
    _type(page, "SELECT segmant FROM traffic [RANGE 1 MINUTE]")
    page.wait_for_selector(".cm-wrong")
    assert page.locator(".cm-wrong").inner_text() == "segmant"
    assert "did you mean `segment`?" in page.locator(".said").inner_text()
    _type(page, "SELECT segment FROM traffic [RANGE 1 MINUTE]")
    page.wait_for_selector(".plan:not(.old) .node")
    _type(page, "SELECT segmant FROM traffic [RANGE 1 MINUTE]")
    page.wait_for_selector(".plan.old .node")


def test_the_console_completes_explains_and_runs_once(server: Server, opened: Callable[..., Page]) -> None:
    page = opened(f"{server.url}/#/console", quiet=False)
    _type(page, "")
    page.locator(".CodeMirror").click()
    page.keyboard.type("SELECT COUNT(*) AS n FROM traf")
    page.wait_for_selector(".CodeMirror-hint")
    assert page.locator(".CodeMirror-hint b").first.inner_text() == "traffic"
    page.keyboard.press("Enter")
    page.keyboard.type(" [RANGE 1 MINUTE SLIDE 10 SECONDS]")
    page.wait_for_selector(".plan .node")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[aria-label=Answer] td")
    assert int(page.locator("[aria-label=Answer] td").first.inner_text()) > 0


def test_a_select_becomes_a_standing_query_that_is_dropped_again(
    server: Server, opened: Callable[..., Page]
) -> None:
    page = opened(f"{server.url}/#/console", quiet=False)
    _type(page, "SELECT COUNT(*) AS n FROM traffic [RANGE 20 SECONDS SLIDE 10 SECONDS]")
    page.get_by_label("Name of the standing query").fill("my count")
    page.get_by_role("button", name="Make it standing").click()
    page.wait_for_url("**/#/query/my%20count")
    page.wait_for_selector(".chart.tall canvas")
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Really drop it").click()
    page.wait_for_url("**/#/")
    _until(lambda: "my count" not in server.windrow.queries)


def test_the_first_visit_goes_from_a_window_to_a_join_to_overload(
    server: Server, opened: Callable[..., Page]
) -> None:
    page = opened(f"{server.url}/#/")
    page.get_by_role("button", name="Ask it").click()
    page.wait_for_selector("article[data-query=first_window]")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Join them").click()
    page.wait_for_selector("article[data-query=mixed_signals]")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Triple the rate").click()
    page.get_by_role("button", name="1,800 rows/s now").click()
    page.wait_for_selector(".banner")
    said = page.locator(".banner").first.inner_text()
    assert "in gaps of at most 1 h." in said
    assert "Every answer that is shown is exact" in said
    page.get_by_role("button", name="Back to the first rate").click()
    page.wait_for_selector(".guide", state="detached")
    for name in ("first_window", "mixed_signals"):
        server.http.delete(f"/api/queries/{name}").raise_for_status()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["#/", "#/query/average_speed", "#/console"])
def test_no_rule_of_accessibility_is_broken(
    server: Server, opened: Callable[..., Page], scheme: str, place: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = opened(f"{server.url}/{place}", scheme=scheme, quiet=False)
    page.wait_for_selector(".card")
    page.wait_for_timeout(1500)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:150] for node in each["nodes"][:3]]) for each in found] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["#/", "#/query/average_speed", "#/console"])
def test_a_narrow_screen_scrolls_down_only(
    server: Server, opened: Callable[..., Page], scheme: str, place: str
) -> None:
    page = opened(f"{server.url}/{place}", scheme=scheme, width=380)
    page.wait_for_selector(".card")
    page.wait_for_timeout(800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert page.evaluate("document.documentElement.dataset.theme") == scheme


def test_keys_lead_from_page_to_page_and_change_the_theme(
    server: Server, opened: Callable[..., Page]
) -> None:
    page = opened(f"{server.url}/#/")
    page.wait_for_selector(".card")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("c")
    page.wait_for_selector(".CodeMirror")
    page.locator("main").focus()
    page.keyboard.press("h")
    page.wait_for_selector(".home")


def test_names_of_users_are_text_and_nothing_else(server: Server, opened: Callable[..., Page]) -> None:
    name = '<img src=x onerror="document.title=1">'
    server.http.post(
        "/api/statements",
        json={
            "sql": f"CREATE QUERY `{name}` AS"
            " SELECT COUNT(*) AS `<b>n</b>` FROM traffic [RANGE 1 MINUTE SLIDE 1 MINUTE]"
        },
    ).raise_for_status()
    page = opened(f"{server.url}/#/")
    page.wait_for_selector("article >> nth=4")
    assert page.locator("article h3").nth(4).inner_text() == name
    assert page.locator("main img").count() == 0
    page.locator("article h3 a").nth(4).click()
    page.wait_for_selector(".title h1")
    assert page.locator(".title h1").inner_text() == name
    assert page.title() != "1"
    page.close()
    server.service.drop(name, Caller())


def test_a_token_is_asked_for_once(opened: Callable[..., Page], tmp_path: Path) -> None:
    token = "t" * 32
    with serving(tmp_path, tokens=AccessTokens.of([f"read {token}"])) as server:
        colours = [
            opened(server.url, scheme=scheme, quiet=False).evaluate(
                "getComputedStyle(document.body).backgroundColor"
            )
            for scheme in ("light", "dark")
        ]
        assert colours[0] != colours[1]
        page = opened(server.url, quiet=False)
        page.get_by_label("Token").fill("wrong" * 8)
        page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("[role=alert]")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("article[data-query=sums]")
        assert page.evaluate("document.cookie") == ""


def test_the_page_goes_on_after_a_restart_without_loss(opened: Callable[..., Page], tmp_path: Path) -> None:
    script = """
    CREATE STREAM s (v DOUBLE, t BIGINT) WATTR t SLACK 0;
    CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10];"""

    def push(server: Server, numbers: range) -> None:
        lines = "\n".join(f'{{"v": 1, "t": {10 * n}}}' for n in numbers)
        headers = {"content-type": "application/x-ndjson"}
        server.http.post("/api/streams/s/rows", content=lines, headers=headers).raise_for_status()

    with serving(tmp_path, script) as server:
        port = server.listener.port
        push(server, range(10))
        page = opened(f"{server.url}/#/", quiet=False)
        page.wait_for_selector("article[data-query=counts] canvas")
    page.wait_for_selector(".live.off")
    with serving(tmp_path, script, port=port) as server:
        push(server, range(10, 20))
        shown = "async () => (await import('/page/store.js')).store.answers('counts').map(row => row.at)"
        _until(lambda: page.evaluate(shown) == [10 * n for n in range(1, 20)])
        push(server, range(20, 30))
        _until(lambda: page.evaluate(shown) == [10 * n for n in range(1, 30)])
        threading.Event().wait(0.2)
        assert page.evaluate(shown) == [10 * n for n in range(1, 30)]
