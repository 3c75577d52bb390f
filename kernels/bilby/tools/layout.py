#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turn objects.layout into C accessors, assembler offsets, sizes and a page.

    layout.py TABLE... c|asm|sizes|doc > FILE

Only the standard library is used.  A table that overlaps, leaves a word, or
misaligns a field is refused with its line number.
"""

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path


class LayoutError(Exception):
    """The table is wrong; the message begins with the line number."""


@dataclass
class Field:
    line: int
    name: str
    doc: str
    word: int = 0
    high: int = 31
    low: int = 0
    window: int | None = None
    to: str = ""  # the object at that address
    aligned: int = 0  # with "window": the divisor of the address
    plus: int = 0
    offset: int = 0
    ctype: str = ""
    count: int = 0  # 0: not an array
    inside: str = ""  # of an object: the field whose bytes it shares

    @property
    def width(self) -> int:
        return self.high - self.low + 1

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.low


@dataclass
class Record:
    kind: str  # capability, object, word
    name: str
    doc: str
    number: int = 0
    size: int = 0
    fields: list[Field] = field(default_factory=list)


TYPE_BYTES = {
    "byte_t": 1,
    "word_t": 4,
    "count_t": 8,
    "struct_cap": 8,
    "struct_slot": 16,
    "struct_lookup": 16,
    "struct_levels": 64,
}


def type_bytes(ctype: str, line: int) -> int:
    if ctype.endswith("*"):
        return 4
    if ctype not in TYPE_BYTES:
        raise LayoutError(f"line {line}: unknown type {ctype}")
    return TYPE_BYTES[ctype]


def field_bytes(item: Field) -> int:
    return type_bytes(item.ctype, item.line) * max(item.count, 1)


def c_type(ctype: str) -> str:
    return ctype.replace("struct_", "struct ").replace("*", " *")


def parse_bits(text: str, line: int) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match or not 31 >= int(match[1]) >= int(match[2]):
        raise LayoutError(f"line {line}: '{text}' is not HIGH:LOW")
    return int(match[1]), int(match[2])


def parse_field(record: Record, words: list[str], line: int) -> Field:
    item = Field(line=line, name=words[0], doc=words[-1])
    if record.kind == "object":
        item.offset = int(words[1])
        match = re.fullmatch(r"([\w*]+)(?:\[(\d+)\])?", words[2])
        if not match:
            raise LayoutError(f"line {line}: '{words[2]}' is not a type")
        item.ctype, item.count = match[1], int(match[2] or 0)
        if words[3:-1]:
            option, item.inside = words[3:-1]
            if option != "inside":
                raise LayoutError(f"line {line}: unknown option {option}")
        return item
    rest = words[1:-1]
    if record.kind == "capability":
        item.word = int(rest.pop(0))
    item.high, item.low = parse_bits(rest.pop(0), line)
    while rest:
        option = rest.pop(0)
        if option == "window":
            item.window = int(rest.pop(0))
            item.aligned = 1 << item.window
        elif option == "to":
            item.to = rest.pop(0)
        elif option == "plus":
            item.plus = int(rest.pop(0))
        else:
            raise LayoutError(f"line {line}: unknown option {option}")
    return item


def check_bits(record: Record) -> None:
    used = [0x1F, 0] if record.kind == "capability" else [0]
    for item in record.fields:
        if item.word >= len(used):
            raise LayoutError(f"line {item.line}: {record.name} has no word {item.word}")
        if used[item.word] & item.mask:
            raise LayoutError(f"line {item.line}: {record.name}.{item.name} overlaps")
        used[item.word] |= item.mask


def check_inside(record: Record, item: Field, host: Field | None) -> None:
    """A field shares bytes of the field before it."""
    if host is None or host.name != item.inside or host.inside:
        raise LayoutError(f"line {item.line}: {item.inside} is not the field before {item.name}")
    end = host.offset + field_bytes(host)
    if not host.offset <= item.offset <= end - field_bytes(item):
        raise LayoutError(f"line {item.line}: {record.name}.{item.name} is not in {host.name}")


def check_bytes(record: Record) -> None:
    at = 0
    before: Field | None = None
    for item in record.fields:
        if item.inside:
            check_inside(record, item, before)
            continue
        before = item
        if item.offset != at:
            raise LayoutError(
                f"line {item.line}: {record.name}.{item.name} is at {item.offset}, expected {at}"
            )
        at += field_bytes(item)
    if at != record.size:
        raise LayoutError(f"object {record.name} has {at} bytes, not {record.size}")


def extend(records: list[Record], name: str, size: int, line: int) -> None:
    """The fields that follow belong to an object of an earlier table, which comes last now."""
    found = [r for r in records if r.kind == "object" and r.name == name]
    if not found:
        raise LayoutError(f"line {line}: no object {name} to extend")
    records.remove(found[0])
    records.append(found[0])
    found[0].size = size


def align(records: list[Record]) -> None:
    """A field with the address of an object is a multiple of the object's size."""
    sizes = {r.name: r.size for r in records if r.kind == "object"}
    for item in (item for record in records for item in record.fields if item.to):
        if item.window is None or item.to not in sizes:
            raise LayoutError(f"line {item.line}: {item.name} is no address of an object {item.to}")
        item.aligned = sizes[item.to]


def parse(text: str) -> list[Record]:
    records: list[Record] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip() or raw.startswith("#"):
            continue
        words = shlex.split(raw)
        if raw[0] != " ":
            if words[0] == "extend":
                extend(records, words[1], int(words[2]), number)
                continue
            record = Record(kind=words[0], name=words[1], doc=words[-1])
            if record.kind == "capability":
                record.number = int(words[2])
            elif record.kind == "object":
                record.size = int(words[2])
            elif record.kind != "word":
                raise LayoutError(f"line {number}: unknown kind {words[0]}")
            records.append(record)
        elif not records:
            raise LayoutError(f"line {number}: a field before any record")
        else:
            records[-1].fields.append(parse_field(records[-1], words, number))
    for record in records:
        (check_bytes if record.kind == "object" else check_bits)(record)
    align(records)
    numbers = [r.number for r in records if r.kind == "capability"]
    if len(set(numbers)) != len(numbers):
        raise LayoutError("two capabilities have the same number")
    return records


def mask_text(mask: int) -> str:
    return f"0x{mask:x}u"


def getter_expression(item: Field, source: str) -> str:
    if item.window is not None:
        shift = item.low - item.window
        moved = f"({source} >> {shift})" if shift >= 0 else f"({source} << {-shift})"
        return f"in_window({moved}, {item.aligned}u)"
    if item.width == 32:
        return source
    value = source if item.low == 0 else f"({source} >> {item.low})"
    if item.high != 31:
        value = f"({value} & {mask_text(item.mask >> item.low)})"
    return f"({value} + {item.plus}u)" if item.plus else value


def setter_expression(item: Field, value: str) -> str:
    if item.window is not None:
        shift = item.low - item.window
        moved = f"({value} << {shift})" if shift >= 0 else f"({value} >> {-shift})"
        return f"({moved} & {mask_text(item.mask)})"
    if item.width == 32:
        return value
    if item.plus:
        value = f"({value} - {item.plus}u)"
    moved = value if item.low == 0 else f"({value} << {item.low})"
    return f"({moved} & {mask_text(item.mask)})"


BANNER = "Generated by tools/layout.py from objects.layout; do not edit."


def declaration(item: Field) -> str:
    array = f"[{item.count}]" if item.count else ""
    space = "" if item.ctype.endswith("*") else " "
    return f"{c_type(item.ctype)}{space}{item.name}{array}; /* {item.doc} */"


def emit_struct(record: Record) -> list[str]:
    out = [f"/* {record.doc}. */", f"struct {record.name} {{"]
    for item, following in zip(record.fields, [*record.fields[1:], None], strict=True):
        if item.inside:
            continue
        if following is None or not following.inside:
            out.append(f"    {declaration(item)}")
            continue
        before = following.offset - item.offset
        out += ["    union {", f"        {declaration(item)}", "        struct {"]
        if before:
            out.append(f"            byte_t before_{following.name}[{before}];")
        out += [f"            {declaration(following)}", "        };", "    };"]
    out.append("};")
    out.append(f'_Static_assert(sizeof(struct {record.name}) == {record.size}, "{record.name}");')
    for item in record.fields:
        out.append(
            f"_Static_assert(__builtin_offsetof(struct {record.name}, {item.name}) == "
            f'{item.offset}, "{record.name}.{item.name}");'
        )
    return [*out, ""]


def emit_capability(record: Record) -> list[str]:
    name = record.name
    out = [f"/* {record.doc}. */"]
    for item in record.fields:
        source = f"cap->w[{item.word}]"
        out += [
            f"static inline word_t {name}_cap_{item.name}(const struct cap *cap)",
            f"{{ return {getter_expression(item, source)}; }}",
            f"static inline void {name}_cap_set_{item.name}(struct cap *cap, word_t value)",
            "{",
            f"    {source} = ({source} & {mask_text(~item.mask & 0xFFFFFFFF)})"
            f" | {setter_expression(item, 'value')};",
            "}",
        ]
    params = "".join(f", word_t {item.name}" for item in record.fields)
    words = [f"{record.number}u", "0u"]
    for item in record.fields:
        words[item.word] += f" | {setter_expression(item, item.name)}"
    out += [f"static inline void {name}_cap_make(struct cap *cap{params})", "{"]
    out += [f"    cap->w[{i}] = {text};" for i, text in enumerate(words)]
    return [*out, "}", ""]


def emit_word(record: Record) -> list[str]:
    out = [f"/* {record.doc}. */"]
    for item in record.fields:
        out += [
            f"static inline word_t {record.name}_{item.name}(word_t word)",
            f"{{ return {getter_expression(item, 'word')}; }}",
        ]
    params = ", ".join(f"word_t {item.name}" for item in record.fields)
    value = " | ".join(setter_expression(item, item.name) for item in record.fields)
    return [
        *out,
        f"static inline word_t {record.name}_make({params})",
        f"{{ return {value}; }}",
        "",
    ]


def emit_c(records: list[Record]) -> str:
    out = [
        "/* SPDX-License-Identifier: BSD-2-Clause */",
        f"/* {BANNER} */",
        "#ifndef BILBY_LAYOUT_H",
        "#define BILBY_LAYOUT_H",
        "",
        "typedef unsigned int word_t;",
        "typedef unsigned long long count_t; /* of events without limit */",
        "typedef unsigned char byte_t;",
        "struct tcb;",
        "struct ipc_buffer;",
        "struct cap { word_t w[2]; };",
        "#include <analysis.h>",
        "",
        "/* The number of a capability is its type. */",
        "enum cap_type {",
    ]
    capabilities = [r for r in records if r.kind == "capability"]
    out += [f"    CAP_{r.name.upper()} = {r.number}," for r in capabilities]
    out += [
        "};",
        "",
        "static inline word_t cap_type(const struct cap *cap)",
        "{ return cap->w[0] & 0x1fu; }",
        "",
    ]
    for record in records:
        emit = {"object": emit_struct, "capability": emit_capability, "word": emit_word}
        out += emit[record.kind](record)
    return "\n".join([*out, "#endif", ""])


def emit_asm(records: list[Record]) -> str:
    out = ["/* SPDX-License-Identifier: BSD-2-Clause */", f"/* {BANNER} */"]
    for record in records:
        if record.kind == "object":
            out.append(f"#define {record.name.upper()}_BYTES {record.size}")
            for item in record.fields:
                out.append(f"#define {record.name.upper()}_{item.name.upper()} {item.offset}")
    return "\n".join([*out, ""])


def emit_sizes(records: list[Record]) -> str:
    out = [
        "/* SPDX-License-Identifier: BSD-2-Clause */",
        f"/* {BANNER} */",
        "#ifndef BILBY_SIZES_H",
        "#define BILBY_SIZES_H",
        "",
        "/* log2 of the bytes that each object takes in this build. */",
    ]
    for record in records:
        if record.kind == "object":
            out.append(f"#define {record.name.upper()}_SIZE_BITS {record.size.bit_length() - 1}u")
            if record.size & (record.size - 1):
                raise LayoutError(f"object {record.name}: {record.size} is no power of two")
    return "\n".join([*out, "", "#endif", ""])


def emit_doc(records: list[Record]) -> str:
    out = [
        "# Objects and capabilities, bit by bit",
        "",
        f"{BANNER}",
        "",
        "A slot is 16 bytes: the two words of a capability, then the two words of",
        "its place in the derivation list. Word 0, bits 4:0 is the capability's number.",
        "An address in the kernel window is stored without its top four bits.",
        "",
        "## Capabilities",
        "",
    ]
    for record in records:
        if record.kind != "capability":
            continue
        out += [f"### {record.number}: {record.name}", "", f"{record.doc}.", ""]
        if not record.fields:
            continue
        out += ["| field | word | bits | meaning |", "|---|---|---|---|"]
        for item in record.fields:
            extra = ""
            if item.window is not None:
                extra = f" (kernel window address, in {1 << item.window}-byte units)"
            if item.plus:
                extra = f" (stored less {item.plus})"
            bits = f"{item.high}:{item.low}"
            out.append(f"| {item.name} | {item.word} | {bits} | {item.doc}{extra} |")
        out.append("")
    out += ["## Objects", "", "Each is aligned to its size.", ""]
    for record in records:
        if record.kind != "object":
            continue
        out += [f"### {record.name}, {record.size} bytes", "", f"{record.doc}.", ""]
        out += ["| offset | type | field | meaning |", "|---|---|---|---|"]
        for item in record.fields:
            array = f"[{item.count}]" if item.count else ""
            kind = c_type(item.ctype) + array
            out.append(f"| {item.offset} | {kind} | {item.name} | {item.doc} |")
        out.append("")
    out += ["## Words of the API", ""]
    for record in records:
        if record.kind != "word":
            continue
        out += [
            f"### {record.name}",
            "",
            f"{record.doc}.",
            "",
            "| bits | field | meaning |",
            "|---|---|---|",
        ]
        out += [f"| {i.high}:{i.low} | {i.name} | {i.doc} |" for i in record.fields]
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


EMITTERS = {"c": emit_c, "asm": emit_asm, "sizes": emit_sizes, "doc": emit_doc}


def main(argv: list[str]) -> int:
    if len(argv) < 3 or argv[-1] not in EMITTERS:
        print("usage: layout.py TABLE... c|asm|sizes|doc", file=sys.stderr)
        return 2
    tables = argv[1:-1]
    try:
        text = "".join(Path(table).read_text(encoding="utf-8") for table in tables)
        sys.stdout.write(EMITTERS[argv[-1]](parse(text)))
    except (LayoutError, OSError) as error:
        print(f"layout.py: {' '.join(tables)}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
