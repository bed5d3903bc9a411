"""See what cells show, without a test: ``python -m tests.browser.look CELL… --to FILE.png``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.browser import WITHOUT, find_browser, workshop
from tests.browser.notebook import Notebook


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.look", description=__doc__)
    parser.add_argument("cells", nargs="+", metavar="CELL", help="source, or @FILE to read it from")
    parser.add_argument("--to", type=Path, default=Path("look.png"), help="the picture's file")
    parser.add_argument("--only", type=int, metavar="N", help="only what cell N shows, from 0")
    parser.add_argument("--wait", metavar="TEXT", help="until this is in the page")
    parser.add_argument("--do", metavar="FILE", help="Python to run with `book` before the picture")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--face", choices=["lab", "notebook"], default="lab")
    args = parser.parse_args()
    executable = find_browser()
    if executable is None:
        sys.exit(WITHOUT)
    cells = [Path(one[1:]).read_text("utf-8") if one[0] == "@" else one for one in args.cells]
    with (
        tempfile.TemporaryDirectory() as folder,
        workshop(executable, Path(folder) / "lab") as chromium,
    ):
        home = Path(folder) / "home"
        kernel = chromium.lab.kernel(home)
        to = args.to.resolve()
        book = Notebook(chromium.page(), chromium.lab, kernel, home, to.parent, "look")
        try:
            book.open(cells, args.face)
            if args.dark:
                book.dark()
            if args.narrow:
                book.narrow()
            book.run_all()
            if args.wait:
                expect(book.page.get_by_text(args.wait).first).to_be_visible()
            if args.do:
                exec(Path(args.do).read_text("utf-8"), {"book": book, "expect": expect})
        finally:
            book.shot(to.stem, None if args.only is None else book.output(args.only))
            sys.stderr.writelines(f"{problem}\n" for problem in book.verdict())
            book.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
