"""The documents name existing paths, modules and pages of the site."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

from scripts.reference import error_codes
from wcet.cli import parser
from wcet.platforms.platform_keys import KEYS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
FOLDERS = (*PACKAGES, "bench", "campaigns", "docs", "kernels", "scripts", "tests")
KERNEL = ROOT / "kernels/bilby"
OF_THE_KERNEL = tuple(sorted(path.name for path in KERNEL.iterdir() if path.is_dir()))
MODULES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
DOCUMENTS = sorted(
    path
    for pattern in ("docs/**/*.md", "README.md", "CONTRIBUTING.md", "kernels/bilby/**/*.md")
    for path in ROOT.glob(pattern)
)
ARCHITECTURE = ROOT / "docs/architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PROSE = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
    *(KERNEL / f"{name}.md" for name in ("docs/testing", "docs/ipc", "user/README")),
    *(KERNEL / "boards/cubieboard/README.md", ROOT / "bench/benchmark.md"),
]
FIELD = {  # a former word of ours, as a pattern: the field's
    r"kept": "cached, stored",
    r"recalled": "cache hit",
    r"questions?": "query, proof obligation",
    r"answer(?:s|ed)?": "result",
    r"pieces?": "recorded sub-path, preemption segment, subgraph",
    r"rest(?:s|ed)? on": "depends on, assumes",
    r"(?:given|gives?|gave) back": "preserved",
    r"(?:\d+|each|every|by|of a|of its|more) turns?": "iteration",
    r"weed(?:s|ed|ing)?": "Houdini",
    r"guess(?:es|ed)?": "candidate invariant",
    r"(?<!hill )climb(?:s|ed|ing)?": "hill climbing",
    r"only execution": "concrete execution",
    r"levers?": "suggestion",
    r"survival": "evidence for a fact",
    r"misfits?": "schema error",
    r"loans?": "donation",
    r"landings?": "target check",
    r"paid": "credited miss",
    r"under way": "in progress, pending, outstanding",
    r"what": "the noun itself",
    r"(?:that|those) of": "the noun itself",
}
FIRST_TERMS = {
    *("must analysis", "jump table", "IPET objective", "dual issue", "k-induction"),
    *("exit status", "following a trace"),
}
FIRST_RECIPES = {
    *(
        "A fact kind",
        "A core",
        "A cache policy",
        "An instruction",
        "A report format",
        "A proof strategy",
    ),
}
INITS = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py"))
SITE = ROOT / "mkdocs.yml"
CHANGELOG = ROOT / "CHANGELOG.md"
SCREEN = 40  # lines
WORDS_OF_AN_ENTRY = 25
BUILT_OR_ABOVE = {"CHANGELOG.md", "SECURITY.md", "docs/errors.md"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def quoted_paths(text: str, folders: tuple[str, ...] = FOLDERS) -> list[str]:
    """Quoted paths that begin with a folder of ours, and all module names."""
    quoted = re.findall(rf"`((?:{'|'.join(folders)})/[^\s`<>()]*)`", text)
    return [*quoted, *(m for m in re.findall(r"(?<![\w/*-])\w+\.py\b", text))]


def dead(document: Path, text: str) -> list[str]:
    """Paths that are not there. NAME stands for any name, and a module may be in any folder."""
    of_kernel = document.is_relative_to(KERNEL)
    starts = [ROOT, KERNEL] if of_kernel else [ROOT]
    paths = quoted_paths(text, (*FOLDERS, *OF_THE_KERNEL) if of_kernel else FOLDERS)
    patterns = {path: path.replace("NAME", "*").rstrip("/") for path in paths}
    return [
        path
        for path, pattern in patterns.items()
        if path not in MODULES and not any(any(start.glob(pattern)) for start in starts)
    ]


def prose(text: str) -> str:
    """Text without quotations: code, tables of campaigns, words of screens."""
    text = re.sub(r"<!-- (.*?): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
    text = text.partition("\n## Words on screens\n")[0]
    text = re.sub(r"^(?: {4}|\t).*", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\"[^\"]{,120}\"", "", text)


def former_words(text: str) -> list[str]:
    return [
        f"{match[0]}: write {word}"
        for pattern, word in FIELD.items()
        for match in re.finditer(rf"\b{pattern}\b", prose(text), re.IGNORECASE)
    ]


def where_is() -> list[tuple[str, str, str]]:
    """Term, folder and file of each row of CONTRIBUTING's table."""
    text = CONTRIBUTING.read_text()
    return re.findall(r"^\| ([\w -]+) \| `([\w/]+/)` \| `([\w/.-]+)` \|$", text, re.MULTILINE)


def normal(text: str) -> str:
    """Words apart by one space, hyphens and underscores included."""
    return " ".join(re.split(r"[\s_-]+", text))


def test_every_path_exists() -> None:
    found = {named(document): dead(document, document.read_text()) for document in DOCUMENTS}
    assert not {document: paths for document, paths in found.items() if paths}


def test_every_class_exists() -> None:
    """Names such as `LoopNest.build` in our documents exist as classes with members."""
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in sources)))
    for page in (*ROOT.glob("docs/*.md"), CONTRIBUTING):
        for name in re.findall(r"`([A-Z][a-z]+[A-Z]\w*(?:\.\w+)?)`", page.read_text()):
            assert words.issuperset(name.split(".")), (named(page), name)


def test_a_path_that_is_gone_is_seen() -> None:
    text = "`quoll/gone.py`, `gone.py`, `cache/must.py`, `must.py`, `tests/*.py`, `--entry syscall`"
    assert dead(ARCHITECTURE, text) == ["quoll/gone.py", "gone.py"]
    assert len(quoted_paths(text)) == 5


def test_documents_have_the_words_of_the_field() -> None:
    found = {named(document): former_words(document.read_text()) for document in PROSE}
    assert not {document: words for document, words in found.items() if words}


def test_help_has_the_words_of_the_field() -> None:
    """Options, quotations and lists of screen words are exempt."""
    top = parser()
    for grammar in (top, *top.get_default("commands")):
        texts = [grammar.description or "", *(action.help or "" for action in grammar._actions)]
        plain = re.sub(r"--[\w-]+|'[^']*'|^ {2}.*", "", "\n".join(texts), flags=re.MULTILINE)
        assert not former_words(plain), grammar.prog


def test_explanations_have_the_words_of_the_field() -> None:
    """Of errors, and of the keys of platform files."""
    assert not former_words(error_codes())
    texts = (text for key in KEYS for text in (key.meaning, key.look, key.without or ""))
    assert not former_words("\n".join(texts))


def test_a_former_word_is_seen() -> None:
    text = "The bound rests on `kept` facts.\n\n    what is code\n\nThat of a hill climbing."
    assert former_words(text) == [
        "rests on: write depends on, assumes",
        "That of: write the noun itself",
    ]


def test_every_term_stands_in_its_file() -> None:
    """Two look-ups: the folder, then a file of it."""
    rows = where_is()
    assert len(rows) >= 30
    for term, folder, path in rows:
        assert path.startswith(folder)
        text = f"{path} {(ROOT / path).read_text()}".lower()
        assert normal(term.lower()) in normal(text), (term, path)


def test_the_questions_of_a_newcomer_have_a_row_or_a_recipe() -> None:
    """Twelve that each reader of the code asks first."""
    terms = {term for term, _, _ in where_is()}
    assert not FIRST_TERMS - terms
    recipes = set(re.findall(r"^### (.*)$", CONTRIBUTING.read_text(), re.MULTILINE))
    assert not FIRST_RECIPES - recipes


def test_every_folder_is_in_the_table() -> None:
    text = ARCHITECTURE.read_text()
    assert not [named(i.parent) for i in INITS if f"| `{named(i.parent)}/` |" not in text]


def test_a_folder_says_what_it_takes_and_gives() -> None:
    for init in INITS:
        folder = ".".join(init.parent.relative_to(ROOT).parts)
        lines = (importlib.import_module(folder).__doc__ or "").splitlines()
        starts = [line.split(" ")[0] for line in lines if line]
        assert starts[1:] == ["Takes", "Gives", "Source:", "Names:"], folder
        for name in re.findall(r"[A-Za-z_][\w.]*\w", lines[-1].removeprefix("Names: ")):
            module, _, attribute = name.partition(".")
            found = importlib.import_module(f"{folder}.{module}")
            assert not attribute or attribute in found.__all__, f"{folder}.{name}"


def test_the_site_has_every_page() -> None:
    """``make docs`` fails on a page that is not in the list; so does this, without mkdocs."""
    listed = re.findall(r"[\w/][\w/.-]*\.md", SITE.read_text())
    folders = {f"reference/{'.'.join(i.parent.relative_to(ROOT).parts)}.md" for i in INITS}
    assert set(listed) == folders | {named(d) for d in DOCUMENTS} | BUILT_OR_ABOVE
    assert len(listed) == len(set(listed))


def test_the_changelog_is_by_versions() -> None:
    """Entries of at most 25 words; the newest version is the package's."""
    sections = re.split(r"^## ", CHANGELOG.read_text(), flags=re.MULTILINE)[1:]
    titles = [section.partition("\n")[0] for section in sections]
    assert titles[0] == "Unreleased"
    assert len(sections[0].splitlines()) <= SCREEN
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", titles[1])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+.*", title) for title in titles[1:])
    entries = [line for line in CHANGELOG.read_text().splitlines() if line.startswith("- ")]
    assert not [entry for entry in entries if len(entry.split()) > WORDS_OF_AN_ENTRY + 1]


def test_every_folder_of_tests_is_a_job() -> None:
    """Slow tests run in parallel jobs: each folder in one of them."""
    jobs = re.findall(r"slow: (tests/.*)", (ROOT / ".github/workflows/test.yml").read_text())
    named_folders = [path for job in jobs for path in job.split()]
    folders = {named(p) for p in (ROOT / "tests").iterdir() if list(p.rglob("test_*.py"))}
    assert sorted(named_folders) == sorted({*folders, "tests/test_*.py"})
