"""Functions that call themselves: each is on a list, with the reason for a limited depth.

Calls and loops of a program nest to any depth, and Python's frames do not. So traversals use their
own stack. The test finds calls of functions and methods by name, in their own module, through
``self`` or through another object with a method of the same name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
Name = tuple[str, ...]  # of classes and functions, from the outermost

HANDS_ON = "it asks another object, whose class is another one"
ONCE = "the second call has other arguments, which it answers at once"
TYPES = "as deep as types of the project are inside each other, and terms, whose size is limited"
LIMITED = "a number of steps is counted down"
ROOM = "followed with room for a million frames: loopbounds.bounds"
TABLES = "as deep as tables of a TOML file, which the reader of these limits"
ALLOWED: dict[str, tuple[str, ...]] = {
    "a function that switches contexts is bounded inside another one, never inside itself": (
        "wcet/analysis/preparation.py: _followed, prepare, valued",
    ),
    LIMITED: (
        "wcet/analysis/preemptible_functions.py: _summarised",
        "quoll/value_analysis/status_words.py: _made",
        "cache/wrong_paths.py: WrongPaths._at_returns, WrongPaths._followed, WrongPaths._from",
        "quoll/indirect/call_types.py: _CallTypes._of_register, _CallTypes._spilled, "
        "_CallTypes._stored, _CallTypes._words_behind",
    ),
    HANDS_ON: (
        "cache/must.py: MustState.covered_by, MustState.renamed, MustAnalysis.join, "
        "MustTransfer.build",
        "ilp/constraints/flowfacts.py: FlowCounts.entries",
        "loopbounds/execution/machine.py: CompiledRun.execute, ConcreteMachine.execute",
        "loopbounds/smt/smt_checker.py: SmtChecker.check",
        "quoll/extraction/functions.py: FunctionTable.cfg",
        "quoll/facts/applied.py: AppliedGuidance.moved",
        "quoll/inlining/return_stacks.py: _Model.join",
        "quoll/facts/regions.py: MemoryRegions.of",
        "quoll/intervals/masked_words.py: bit_and, bit_xor",
        "quoll/preemption/pending.py: _Cases.start",
        "quoll/preemption/predicate.py: PendingPredicate.cases, PendingPredicate.registers, "
        "PendingPredicate.text",
        "quoll/processes/futures.py: Future.result",
        "wcet/masked/masked_entries.py: MaskedRegions.status",
        "wcet/analysis/prepared.py: Prepared.hides_tests",
        "wcet/analysis/result.py: AnalysisResult.assumptions",
        "wcet/gate/record.py: _Sources.line",
        "wcet/reports/missing_facts.py: MissingFact.why",
        "wcet/reports/path_text.py: _File.cycles",
        "quoll/image/memory_map.py: MemoryMap.fixed, MemoryMap.physical",
        "wcet/commands/analyse.py: page_text, run",
    ),
    ONCE: (
        "quoll/semantics/lift.py: _of_form, lifted",
        "quoll/abstract_domain/terms.py: _joined, union",
    ),
    TYPES: (
        "quoll/results/serialization.py: _Serializer._all, _Serializer._tuple, "
        "_Serializer._written, _Serializer.add",
        "quoll/results/cache_key.py: _ContentHasher._whole, _ContentHasher.digest",
        "wcet/gate/record.py: _made, _typed",
    ),
    TABLES: (
        "wcet/platforms/commented.py: _absent, _copied, _section, _sections, _table, _toml, "
        "value_rows",
        "wcet/platforms/controller_templates.py: _addresses, _moved",
        "wcet/platforms/platform_keys.py: _schema_errors",
    ),
    "a condition is of the flags of one instruction; those of predicated ones are joined": (
        "quoll/abstract_domain/condition.py: _restrict, assume, decide, negation, restricted, "
        "symbols",
    ),
    "as deep as paths and types of a symbol, which its reader counts": (
        "quoll/image/itanium_names.py: _Reader._arguments, _Reader._literal, _Reader._local, "
        "_Reader._nested, _Reader._type, _Reader._type_of_two_letters, _Reader._unqualified, "
        "_Reader.name",
        "quoll/image/rust_names.py: _Reader._argument, _Reader._constant, "
        "_Reader._implementation, _Reader._nested, _Reader._type, _Reader.path",
    ),
    "nests of more than DEEPEST loops are not followed": (
        "quoll/value_analysis/bounded_addresses.py: BoundedAddresses._advances_of, "
        "BoundedAddresses._at, BoundedAddresses._through",
    ),
    "as deep as folders": ("quoll/results/results_store.py: _make",),
    "as deep as the causes of an error": ("wcet/process.py: resource_error",),
    "statements that nest too deep are refused": (
        "quoll/source/c_parser.py: _Reader._group, _Reader._simple, _Reader._statement, "
        "_Reader.declarations",
    ),
    ROOM: (
        "loopbounds/reduction/lists.py: _Walk._behind, _Walk._rank",
        "loopbounds/slicing/gated_ssa.py: SsaScope._find, SsaScope._instance, "
        "SsaScope._read, SsaScope.after, SsaScope.along, SsaScope.at, SsaScope.instance, "
        "SsaScope.joined",
        "loopbounds/slicing/slice.py: _Slicer._entry, _Slicer._global_address",
        "loopbounds/slicing/stack_taint.py: StackTaint._of_mixed, StackTaint._of_symbol, "
        "StackTaint.of_term",
        "loopbounds/terms/bit_vectors.py: _bitwise, _conjoin, _eq_constant, "
        "_not_less_and_not_equal, _of_equal_sides, _signed_less, both, either, eq, extract, ite, "
        "operation, ult, zext",
    ),
}


def functions(tree: ast.AST) -> Iterator[tuple[Name, Name, ast.AST]]:
    """Each function with the class around it, if there is one, and its code."""
    pending: list[tuple[ast.AST, Name, Name]] = [(tree, (), ())]
    while pending:
        node, inside, around = pending.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                pending.append((child, (*inside, child.name), (*inside, child.name)))
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (*inside, child.name), around, child
                pending.append((child, (*inside, child.name), around))
            else:
                pending.append((child, inside, around))


def calls(tree: ast.AST) -> dict[Name, set[Name]]:
    """The functions of a module, each with the functions that it names."""
    found = {name: (around, code) for name, around, code in functions(tree)}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    named: dict[Name, set[Name]] = {}
    for name, (around, code) in found.items():
        named[name] = set()
        for node in ast.walk(code):
            of: Name | None = None
            if isinstance(node, ast.Name):
                outer = (name[:k] for k in range(len(name), -1, -1))
                of = next(((*o, node.id) for o in outer if (*o, node.id) in found), None)
                if of is not None and len(of) > 1 and of[:-1] == found[of][0]:
                    of = None  # a method is not reached by its name alone
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and around:
                if node.value.id in ("self", "cls", around[-1]):
                    of = (*around, node.attr)
                elif node.attr == name[-1] and node.value.id not in imported:
                    of = name
            if of in found:
                named[name].add(of)
    return named


def recursive(called: Mapping[Name, set[Name]]) -> set[str]:
    """The functions that reach themselves."""
    found = set()
    for name in called:
        seen, pending = set[Name](), list(called[name])
        while pending:
            at = pending.pop()
            if at not in seen:
                seen.add(at)
                pending += called[at]
        if name in seen:
            found.add(".".join(name))
    return found


def test_every_recursion_is_bounded_and_says_how() -> None:
    """A tree of calls and the walk that made it died of 1,000 calls in a row."""
    listed: dict[str, set[str]] = {}
    for lines in ALLOWED.values():
        for line in lines:
            file, _, text = line.partition(": ")
            listed.setdefault(file, set()).update(text.split(", "))
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    found = {
        str(path.relative_to(ROOT)): names
        for path in files
        if (names := recursive(calls(ast.parse(path.read_text()))))
    }
    assert found == listed


def test_recursion_is_seen() -> None:
    text = """
def odd(n): return even(n - 1)
def even(n): return odd(n - 1)
def once(n): return odd(n)
def outer(n):
    def inner(m): return inner(m - 1)
    return inner(n)
class Tree:
    def depth(self): return max(part.depth() for part in self.parts)
    def left(self): return self.right()
    def right(self): return self.left()
    def even(self): return even(3)
"""
    assert recursive(calls(ast.parse(text))) == {
        "odd", "even", "outer.inner", "Tree.depth", "Tree.left", "Tree.right",
    }  # fmt: skip
