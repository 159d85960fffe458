"""Pictures of the live page for the documentation: docs/images/*.png.

    python tools/screenshots.py

A server without Spark is fed with the traffic generator for a while; the system's Chromium is driven by
Playwright (`make test-integration` installs both).
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
#: rows per second, and seconds before the first picture
RATE, WARM = 600, 70
TUMBLING = (
    "CREATE QUERY readings_per_minute AS SELECT COUNT(*) AS readings, AVG(speed) AS speed"
    " FROM traffic [RANGE 1 MINUTE SLIDE 20 SECONDS] MAX GAP 5"
)
_GUIDE_SEEN = "localStorage.setItem('guide', '9')"


def picture(browser: Any, url: str, name: str, *, scheme: str, width: int, height: int) -> None:
    """One page as a file."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    context.add_init_script(_GUIDE_SEEN)
    page = context.new_page()
    page.goto(url)
    page.wait_for_timeout(4000)
    page.screenshot(path=IMAGES / f"{name}.png")
    context.close()
    print(f"docs/images/{name}.png")


def until_left_out(server: Any, query: str, windows: int) -> None:
    """Until so many windows of a query are missing, and there are answers after them."""
    ends = time.monotonic() + 300
    while server.http.get(f"/api/queries/{query}").json()["missing"] < windows and time.monotonic() < ends:
        time.sleep(1)
    time.sleep(WARM / 10)


def main() -> None:
    """All pictures."""
    sys.path.insert(0, str(ROOT))
    from playwright.sync_api import sync_playwright
    from tests.server.world import TRAFFIC, Feeder, serving

    IMAGES.mkdir(exist_ok=True)
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with serving(None, TRAFFIC) as server, sync_playwright() as driver:
        feeder = Feeder(server.windrow, RATE)
        feeder.start()
        time.sleep(WARM)
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        picture(browser, f"{server.url}/#/", "home", scheme="light", width=1280, height=1040)
        where = f"{server.url}/#/query/average_speed"
        picture(browser, where, "query", scheme="light", width=1280, height=1240)
        picture(browser, f"{server.url}/#/console", "console", scheme="dark", width=1280, height=760)
        server.http.post("/api/statements", json={"sql": TUMBLING}).raise_for_status()
        server.http.post("/api/shed", json={"share": 0.6}).raise_for_status()
        until_left_out(server, "readings_per_minute", 4)
        picture(browser, f"{server.url}/#/", "overload", scheme="dark", width=1280, height=1040)
        browser.close()
        feeder.is_over = True
        feeder.join(10)


if __name__ == "__main__":
    main()
