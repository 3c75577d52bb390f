"""A part of the evaluation for tests: a table with the number of words of another page.

With ``--fail`` it ends with status 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from campaigns.documented import add_write, markdown, write


def main() -> int:
    parser = argparse.ArgumentParser()
    add_write(parser, "a page")
    parser.add_argument("--page")
    parser.add_argument("--table")
    parser.add_argument("--wait", type=float, default=0.0)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--fail", action="store_true")
    options = parser.parse_args()
    time.sleep(options.wait)
    if options.fail:
        print("the reason of the failure")
        return 3
    words = options.other.read_text(encoding="utf-8").split() if options.other else ["none"]
    table = markdown(("table", "words"), [(options.table, f"{len(words)}")])
    write(options, options.page, {options.table: table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
