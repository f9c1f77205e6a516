"""Look at every page of the built documentation in a browser: ``python docs/walk.py build/docs``.

On a desk and on a phone, without a network: no script fails, no image is missing, nothing runs off the edge.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

#: Widths in pixels.
WIDTHS = {"desktop": 1280, "phone": 390}
#: How far, in pixels, the page and each wide element in it reach beyond what can be seen.
OVERFLOW = """() => {
  const edge = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll('main *')].filter(e => {
    if (e.getBoundingClientRect().right <= edge + 1) return false;
    for (let p = e; p; p = p.parentElement) {
      if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(p).overflowX)) return false;
    }
    return e.getBoundingClientRect().width > 0;
  });
  return wide.slice(0, 1).map(e => `${e.tagName.toLowerCase()} ${e.className} ${e.textContent.trim().slice(0, 40)}`);
}"""
BROKEN = "() => [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"


def walk(folder: Path) -> list[str]:
    """What is wrong with the pages in a folder, a line for each finding."""
    from playwright.sync_api import sync_playwright

    browser_path = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if browser_path is None:
        print("No Chromium: the pages are not walked through.")
        return []
    found: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.on("pageerror", lambda error: found.append(f"{page.url}: script error: {error}"))
        page.on("console", lambda line: line.type == "error" and found.append(f"{page.url}: {line.text}"))
        page.on("request", lambda wish: wish.url.startswith("file:") or found.append(f"{page.url} asks for {wish.url}"))
        for path in sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts):
            page.goto(path.as_uri())
            found += [f"{page.url}: missing image {source}" for source in page.evaluate(BROKEN)]
            for where, width in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": 900})
                found += [f"{page.url} ({where}): beyond the edge: {text}" for text in page.evaluate(OVERFLOW)]
        browser.close()
    return found


if __name__ == "__main__":
    began = time.perf_counter()
    findings = walk(Path(sys.argv[1]).resolve())
    print("\n".join(findings))
    print(f"{len(findings)} findings in {time.perf_counter() - began:.0f} s")
    sys.exit(bool(findings))
