"""The output of a comparison by ``wcet check`` and ``wcet diff``."""

from __future__ import annotations

import argparse
import os

from quoll.errors import WcetError
from wcet.atomic import publish
from wcet.gate import change_text, exchange
from wcet.gate.compare import RecordChange

__all__ = ["CLOSED", "add_exchange", "own_status", "publish_comparison"]

CLOSED, UNDONE, MISUSED = 1, 2, 3  # exit statuses


def add_exchange(p: argparse.ArgumentParser) -> None:
    """Add the tolerance and the options for other programs."""
    p.add_argument(
        "--tolerance",
        metavar="PERCENT",
        help="by how much a bound may grow (default: 0)",
    )
    p.add_argument(
        "--even-if-different",
        action="store_true",
        help="compare although facts, platform, options or version differ; the comparison says so",
    )
    for name, what in (
        ("json", "the comparison as JSON"),
        ("markdown", "it as a comment on a pull request"),
        ("junit", "it as JUnit XML, a test for each entry"),
        ("sarif", "it as SARIF 2.1.0: the lines that take more"),
        ("code-quality", "them as a code-quality report for GitLab merge requests"),
    ):
        p.add_argument(f"--{name}", metavar="FILE", help=f"write {what} ('-': standard output)")
    p.add_argument(
        "--annotations",
        action="store_true",
        help="print errors as GitHub workflow commands, shown at the lines "
        "(default: where GITHUB_ACTIONS is set)",
    )


def publish_comparison(options: argparse.Namespace, found: RecordChange) -> int:
    """Print and write a comparison; returns the exit status."""
    annotates = options.annotations or os.environ.get("GITHUB_ACTIONS") == "true"
    lines = list(change_text.annotated(found)) if annotates else []
    publish(
        options,
        [
            (options.json, lambda: exchange.to_json(found)),
            (options.markdown, lambda: change_text.to_markdown(found)),
            (options.junit, lambda: exchange.to_junit(found)),
            (options.sarif, lambda: exchange.to_sarif(found)),
            (options.code_quality, lambda: exchange.to_code_quality(found)),
        ],
        lambda: change_text.to_text(found) + "".join(f"{line}\n" for line in lines),
    )
    return CLOSED if found.failed else 0


def own_status(fault: WcetError) -> WcetError:
    """The error with one of the two exit statuses of comparisons for errors."""
    fault.exit_status = MISUSED if fault.exit_status in (2, 3, 4) else UNDONE
    return fault
