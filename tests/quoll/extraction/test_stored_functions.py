"""Calls through objects of the image in which only constants are stored are resolved."""

from __future__ import annotations

import pytest

from quoll.assumptions import STORED_FUNCTIONS
from quoll.cfg.cfg import Program
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.programs import needs
from tests.testing.quoll.building import address, build
from tests.testing.quoll.pointer_programs import BUILDS, build_pointers

SOURCE = """
struct device { int (*read)(int); void (*write)(char *, int); } devices[4];
int line[64], fill; int (*hook)(int);
static int first(int d) { return d + 1; }
static int second(int d) { return d - 1; }
static void put(char *b, int n) { sink += n; }
N void fill_line(int c) { line[fill++ & 63] = c; }
N void boot(void) { devices[1].read = first; devices[1].write = put; hook = second; }
N int called(unsigned d) { return d < 4 && devices[d].read ? devices[d].read(3) + 1 : 0; }
N int hooked(void) { return hook(2) + 1; }
%s
void init(void) { boot(); }
int run(int x) { fill_line(x); return called(1) + hooked(); }
"""
NAMES = ("C gcc -O2", "C gcc -Os Thumb-2", "C gcc -O2 movw", "C clang -O2 movw")
OTHERS = {
    "argument": "N void attach(unsigned d, int (*f)(int)) { devices[d & 3].read = f; hook = f; }",
    "structure": "struct device more; N void attach(void) { devices[2] = more; hook = more.read; }",
    "passed": "N void set(void **at, void *f) { *at = f; }"
    "N void attach(void) { set((void **)&devices[2].read, second); set((void **)&hook, first); }",
    "loaded": "void *at[] = {&devices[2].read, &hook};",
    "returned": "N void *of(int d) { return d ? (void *)&devices[d] : (void *)&hook; }",
    "kept": "void *a, *b; N void attach(int d) { a = &devices[d]; b = &hook; }",
    "number": "N void attach(unsigned d) { devices[d & 3].read = (int (*)(int))d; }"
    "N void change(int d) { *(char *)&hook = d; }",
    "neighbour": "N void attach(int d, int x) { line[d] = x; }",
    "float": "volatile double real; N void attach(int d) { *(double *)&devices[1] = real;"
    " *(double *)&line[fill & 95] = real; }",
    "supervisor call": 'N void attach(int d) { register void *at __asm__("r0") = &devices[d];'
    ' register void *more __asm__("r1") = &hook;'
    ' __asm__ volatile("svc #1" : : "r"(at), "r"(more)); }',
    "any index": "N void attach(int d) { devices[d].read = second; (&hook)[d] = first; }",
}


def extracted(source: str, name: str, function: str) -> Program:
    image = Image.load(build_pointers(source, BUILDS[name]))
    symbol = image.symbol(function)
    assert symbol is not None
    return extract(image, [symbol.addr | symbol.thumb])


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("function", "callees"), [("called", {"first"}), ("hooked", {"second"})])
def test_stored_constants_are_the_targets(name: str, function: str, callees: set[str]) -> None:
    """Of the member that is loaded, and with an assumption that names the object."""
    program = extracted(SOURCE % "", name, function)
    assert not program.unresolved
    blocks = (block for cfg in program.functions.values() for block in cfg.blocks)
    indirect = [block for block in blocks if block.last.target is None]
    called = {program.functions[callee].name for block in indirect for callee in block.calls}
    assert called == callees
    assert STORED_FUNCTIONS.name in {assumption.name for assumption in program.assumptions}


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("function", ["called", "hooked"])
def test_another_way_to_the_object_leaves_the_call_open(other: str, function: str) -> None:
    program = extracted(SOURCE % OTHERS[other], "C gcc -O2", function)
    assert len(program.unresolved) == 1


CHANGED = """
int (*hook)(int), (*other)(int); struct with32 { int n; int (**slot)(int); };
struct large { int n; int (**slot)(int); int rest[8]; };
static int first(int d) { return d + 1; }
static int second(int d) { return d - 1; }
N void boot(void) { hook = first; other = second; }
%s
N int hooked(void) { return hook(2) + 1; }
void init(void) { boot(); attach(1); more(2); }
int run(int x) { return hooked(); }
"""
BY_VALUE = """N void set(struct with32 a) { sink = a.n; *a.slot = second; }
N void attach(int n) { struct with32 a = {n, &hook}; set(a); }
N void more(int n) { struct with32 a = {n, &other}; set(a); }"""
SCALARS = """static N void set(struct large *a) { sink = a->n; *a->slot = second; }
N void attach(int n) { struct large a = {n, &hook}; set(&a); }
N void more(int n) { struct large a = {n, &other}; set(&a); }"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize(
    ("code", "name"),
    [(BY_VALUE, "C clang -O2 movw"), (SCALARS, "C gcc -O2"), (SCALARS, "C clang -O2 movw")],
    ids=["by value", "GCC", "Clang"],
)
def test_a_parameter_in_further_registers_leaves_the_call_open(code: str, name: str) -> None:
    """A structure by value whose name ends with a number; members that a compiler hands on.

    GCC names the function set.isra.0, and its type still has one pointer.
    """
    assert len(extracted(CHANGED % code, name, "hooked").unresolved) == 1


PLAIN = """
int (*hook)(int), (*other)(int);
static int first(int d) { return d + 1; }
int second(int d) { return d - 1; }
N void boot(void) { hook = first; } N void more(void) { other = first; }
%s
N int hooked(void) { return hook(2) + 1; }
void init(void) { boot(); more(); }
int run(int x) { return hooked(); }
"""
BY_HAND = ".text\n.syntax unified\n.arm\n.global attach\n%sattach: ldr r0, =hook\n"
BY_HAND += "ldr r1, =second\nstr r1, [r0]\nmov r0, #0\nbx lr\n.ltorg\n%s"
PAIR = ".text\n.syntax unified\n.arm\n.global attach\n.type attach, %function\n"
PAIR += "attach: adr r0, 1f\nldm r0, {r0, r1}\nstr r1, [r0]\nbx lr\n1: .word hook, second\n"
PAIR += ".size attach, . - attach\n"
UNSEEN = {
    "table beside code": ("""__attribute__((section(".text.table")))
int (**const at[])(int) = {&hook, &other};
N void attach(int n) { *at[n] = second; }""", ""),
    "packed": ("""struct __attribute__((packed)) { char kind; int (**at)(int); } last = {1, &hook};
N void attach(void) { *last.at = second; }""", ""),
    "assembly without a type": ("", BY_HAND % ("", "")),
    "assembly without a size": ("", BY_HAND % (".type attach, %function\n", "")),
    "several words": ("", PAIR),
}  # fmt: skip


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("code", UNSEEN)
def test_an_address_that_is_known_from_elsewhere_leaves_the_call_open(code: str) -> None:
    """Other functions load the same address, so its value alone tells nothing of other places."""
    source, assembly = UNSEEN[code]
    options = (*BUILDS["C gcc -O2"], "-fno-section-anchors")
    image = Image.load(build_pointers(PLAIN % source, options, assembly))
    assert len(extract(image, [address(image, "hooked")]).unresolved) == 1


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("thumb", [False, True])
def test_a_store_to_an_address_in_the_source_is_followed(*, thumb: bool) -> None:
    """A compiler moves such an address into a register, without a word of it."""
    image = Image.load(build("""
    __attribute__((section(".fixed"))) int (*hook)(int) = 0;
    __attribute__((noipa)) int first(int d) { return d + 1; }
    __attribute__((noipa)) int second(int d) { return d - 1; }
    __attribute__((noipa)) void boot(void) { hook = first; }
    __attribute__((noipa)) void attach(void) { *(int (**)(int))0x20000000 = second; }
    __attribute__((noipa)) int hooked(void) { return hook(2) + 1; }
    int main(void) { boot(); attach(); return hooked(); }""",
        "-Wl,--section-start=.fixed=0x20000000", thumb=thumb, cpu="cortex-a8",
    ))  # fmt: skip
    symbol = image.symbol("hooked")
    assert symbol is not None
    program = extract(image, [symbol.addr | symbol.thumb])
    assert program.unresolved or {"first", "second"} <= {c.name for c in program.functions.values()}


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("pool", ["inside", "behind"])
def test_assembly_with_types_and_sizes_is_read(pool: str) -> None:
    options = (*BUILDS["C gcc -O2"], "-fno-section-anchors")
    size = ".size attach, . - attach\n"
    assembly = BY_HAND % (".type attach, %function\n", size if pool == "inside" else "")
    if pool == "behind":
        other = ".type more, %function\nmore: bx lr\n.size more, . - more\n"
        assembly = assembly.replace(".ltorg\n", f"{size}{other}.ltorg\n")
    image = Image.load(build_pointers(PLAIN % "", options, assembly))
    program = extract(image, [address(image, "hooked")])
    assert not program.unresolved
    assert {"first", "second"} <= {cfg.name for cfg in program.functions.values()}


def test_a_large_program_is_not_searched() -> None:
    body = ".type main, %function\nmain: ldr r0, =hook\nldr r0, [r0]\nbx r0\n.ltorg\n"
    data = ".data\n.type hook, %object\n.size hook, 4\nhook: .word main\n"
    text = f".global main\n.text\n.arm\n{body}.space 0x40000\n{data}"
    image = Image.load(build(text, language="S"))
    assert extract(image, [address(image, "main")]).unresolved
