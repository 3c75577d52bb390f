# SPDX-License-Identifier: BSD-2-Clause
"""The statements of a C file, and the edits that each operator makes of them.

A statement with a body (if, while, for, switch) is its condition. Code that tree-sitter cannot
parse is left out: it is never in a function of the kernel (a test).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from kernels.bilby.verification.mutation.fault import Edit, Place, Site, normal

PARSER = Parser(Language(tree_sitter_c.language()))
# Words of the kernel's own that the grammar does not know.
BLANKED = re.compile(
    rb"\b(?:PREEMPTIBLE|BOOT_CODE|BOOT_CONST|_Noreturn|__extension__|struct(?= \w+,))\b"
    rb"|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)"
)
# They make the compiler forget its knowledge, and change nothing else (analysis.h).
HINTS = {"ONE_REGISTER", "COMPUTED_IN_EACH_TURN", "ONE_WAY_OUT", "MACHINE_LABEL"}

BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {"==": "!=", "!=": "=="}
CONNECTIVE = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"}
ARITHMETIC |= {"*": "+", "%": "/", "/": "*"}
ASSIGNMENT = {"+=": "-=", "-=": "+=", "|=": "=", "&=": "|=", "^=": "|=", "<<=": ">>=", ">>=": "<<="}
STEP = {"++": "--", "--": "++"}
BARRIERS = re.compile(rb"(?:machine|interrupts|asid_flush|pin)_")
FAMILY = re.compile(r"\b([A-Z]+)_[A-Z0-9_]+\b")


def families(texts: Mapping[str, bytes]) -> dict[str, str]:
    """Each named constant of these files, and the next of its family in order."""
    found: dict[str, set[str]] = {}
    for text in texts.values():
        for match in FAMILY.finditer(text.decode()):
            found.setdefault(match[1], set()).add(match[0])
    following: dict[str, str] = {}
    for family in ("ERROR", "EP", "THREAD", "CAP", "SYS", "LABEL", "FAULT", "SIZE", "REG", "TYPE"):
        names = sorted(found.get(family, ()))
        following |= dict(zip(names, names[1:] + names[:1], strict=True))
    return following


def sites(file: str, source: bytes, following: Mapping[str, str]) -> list[Site]:
    """All statements of a file, in order."""
    blanked = BLANKED.sub(lambda match: b" " * len(match[0]), source)
    return list(Finder(file, source, following).all(blanked))


class Finder:
    def __init__(self, file: str, source: bytes, following: Mapping[str, str]) -> None:
        self.file = file
        self.source = source
        self.following = following
        self.seen: Counter[tuple[str, str]] = Counter()

    def all(self, blanked: bytes) -> Iterator[Site]:
        for node in walk(PARSER.parse(blanked).root_node):
            if node.type == "function_definition":
                body = node.child_by_field_name("body")
                if body is not None:
                    yield from self.function(name_of(node), body, 0, returns_bool(node))
            elif node.type == "preproc_function_def":
                yield from self.macro(node)

    def macro(self, node: Node) -> Iterator[Site]:
        """A macro with statements: its text is parsed as a function's."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None or b"{" not in (value.text or b""):
            return
        head = b"void f(void) {"
        text = (value.text or b"").replace(b"\\\n", b"  ")
        for found in walk(PARSER.parse(head + text + b";}").root_node):
            if found.type == "function_definition":
                body = found.child_by_field_name("body")
                assert body is not None
                offset = value.start_byte - len(head)
                yield from self.function((name.text or b"").decode(), body, offset, False)

    def function(self, name: str, body: Node, offset: int, is_bool: bool) -> Iterator[Site]:
        last = last_of(body)
        for node in walk(body):
            if node.has_error:
                continue
            edits = list(self.edits(node, offset, is_bool, node in last))
            if not edits:
                continue
            end = head_end(node)
            start, end = node.start_byte + offset, end + offset
            text = normal(self.source[start:end])
            yield Site(self.file, name, text, self.seen[name, text], start, end, tuple(edits))
            self.seen[name, text] += 1

    # ---- one statement

    def edits(self, node: Node, offset: int, is_bool: bool, is_last: bool) -> Iterator[Edit]:
        kind = node.type
        place = Place("statement", node.start_byte + offset, node.end_byte + offset)
        whole = (place.start, place.end, b";", place)
        if kind == "expression_statement":
            text = self.source[place.start : place.end]
            if any(text.startswith(hint.encode()) for hint in HINTS):
                return
            if any(part.type == "compound_statement" for part in walk(node)):
                return  # statements of their own
            is_barrier = BARRIERS.match(text) or b"asm" in text[:8]
            yield Edit("drop a barrier" if is_barrier else "delete a statement", *whole)
            yield from self.expressions(node, offset, place)
        elif kind in ("break_statement", "continue_statement", "goto_statement"):
            yield Edit("delete a statement", *whole)
        elif kind == "return_statement":
            value = next((child for child in node.children if child.is_named), None)
            if value is None or not is_last:
                yield Edit("delete a statement", *whole)
            if value is not None:
                if is_bool:
                    yield self.negation(value, offset, place)
                yield from self.expressions(node, offset, place)
        elif kind == "declaration":
            yield from self.initial_values(node, offset)
        elif kind == "case_statement":
            yield from self.case(node, offset)
        elif kind in ("if_statement", "while_statement", "do_statement", "for_statement"):
            condition = node.child_by_field_name("condition")
            if condition is not None:
                yield self.negation(condition, offset, expression(condition, offset))
                yield from self.expressions(condition, offset, expression(condition, offset))
            update = node.child_by_field_name("update")
            if update is not None:
                yield from self.expressions(update, offset, expression(update, offset))
            first = node.child_by_field_name("initializer")
            if first is not None and first.type == "declaration":
                yield from self.initial_values(first, offset)
            elif first is not None:
                yield from self.expressions(first, offset, expression(first, offset))
        elif kind == "switch_statement":
            condition = node.child_by_field_name("condition")
            if condition is not None:
                yield from self.expressions(condition, offset, expression(condition, offset))

    def initial_values(self, node: Node, offset: int) -> Iterator[Edit]:
        """Edits of initial values of variables; constants' values are no statements."""
        if any(child.type == "storage_class_specifier" for child in node.children):
            return
        for child in node.children:
            value = child.child_by_field_name("value")
            if value is not None and value.type != "initializer_list":
                yield from self.expressions(value, offset, expression(value, offset))

    def case(self, node: Node, offset: int) -> Iterator[Edit]:
        value = node.child_by_field_name("value")
        body = node.parent
        switch = body.parent if body is not None else None
        condition = switch.child_by_field_name("condition") if switch is not None else None
        if value is None or condition is None:
            return
        place = expression(condition, offset)
        label = self.source[value.start_byte + offset : value.end_byte + offset]
        end = self.source.index(b":", value.end_byte + offset) + 1
        place = Place("case", place.start, place.end, label)
        yield Edit("delete a case", node.start_byte + offset, end, b"", place)

    def negation(self, value: Node, offset: int, place: Place) -> Edit:
        start, end = value.start_byte + offset, value.end_byte + offset
        text = self.source[start:end]
        inner = b"(!" + text + b")" if value.type == "parenthesized_expression" else (
            b"!(" + text + b")")  # fmt: skip
        return Edit("negate a condition", start, end, inner, place)

    def expressions(self, top: Node, offset: int, place: Place) -> Iterator[Edit]:
        for node in walk(top, stop=("compound_statement", "sizeof_expression", "type_descriptor")):
            start, end = node.start_byte + offset, node.end_byte + offset
            kind = node.type
            if kind in ("binary_expression", "assignment_expression", "update_expression"):
                yield from self.operators(node, offset, place)
            elif kind == "number_literal":
                yield Edit("off by one", start, end, one_more(self.source[start:end]), place)
            elif kind in ("true", "false"):
                other = b"false" if kind == "true" else b"true"
                yield Edit("swap a constant", start, end, other, place)
            elif kind == "identifier":
                other_name = self.following.get(self.source[start:end].decode())
                if other_name is not None:
                    yield Edit("swap a constant", start, end, other_name.encode(), place)
            elif kind == "unary_expression":
                operator = node.child_by_field_name("operator")
                if operator is not None and operator.type in ("!", "~"):
                    yield Edit("drop a negation", start, start + 1, b"", place)
            elif kind == "conditional_expression":
                condition = node.child_by_field_name("condition")
                if condition is not None:
                    yield self.negation(condition, offset, place)

    def operators(self, node: Node, offset: int, place: Place) -> Iterator[Edit]:
        operator = node.child_by_field_name("operator")
        if operator is None:
            return
        start, end = operator.start_byte + offset, operator.end_byte + offset
        for name, table in (
            ("move a boundary", BOUNDARY),
            ("negate a comparison", OPPOSITE),
            ("swap a connective", CONNECTIVE),
            ("swap an operator", ARITHMETIC | ASSIGNMENT | STEP),
        ):
            if operator.type in table:
                yield Edit(name, start, end, table[operator.type].encode(), place)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type != "binary_expression" or left is None or right is None:
            return
        if operator.type in ("&&", "||", "|", "&", "+", "-"):
            end = right.end_byte + offset
            yield Edit("drop an operand", left.end_byte + offset, end, b"", place)
        if operator.type in ("&&", "||"):
            start = left.start_byte + offset
            yield Edit("drop an operand", start, right.start_byte + offset, b"", place)


def last_of(body: Node) -> list[Node]:
    """The statement without which control comes to the end of a function; of a switch, its last."""
    last = [child for child in body.children if child.is_named][-1:]
    for inner in [child for node in last for child in node.children]:
        if last[0].type == "switch_statement" and inner.type == "compound_statement":
            return last_of(inner)
    return last_of(last[0]) if last and last[0].type == "case_statement" else last


def expression(node: Node, offset: int) -> Place:
    return Place("expression", node.start_byte + offset, node.end_byte + offset)


def one_more(literal: bytes) -> bytes:
    text = literal.decode()
    digits = text.rstrip("uUlL")
    value = int(digits, 0) + 1
    new = hex(value) if digits[:2].lower() == "0x" else str(value)
    return (new + text[len(digits) :]).encode()


def walk(node: Node, stop: tuple[str, ...] = ()) -> Iterator[Node]:
    """Nodes in order, the first among them."""
    yield node
    for child in node.children:
        if child.type not in stop:
            yield from walk(child, stop)


def head_end(node: Node) -> int:
    """Where a statement's own text ends: before its body."""
    for name in ("body", "consequence"):
        part = node.child_by_field_name(name)
        if part is not None and node.type != "do_statement":
            return part.start_byte
    if node.type == "case_statement":
        value = node.child_by_field_name("value")
        return (value or node).end_byte
    return node.end_byte


def name_of(function: Node) -> str:
    node: Node | None = function.child_by_field_name("declarator")
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator")
    return node.text.decode() if node is not None and node.text is not None else ""


def returns_bool(function: Node) -> bool:
    kind = function.child_by_field_name("type")
    return kind is not None and kind.text == b"bool"
