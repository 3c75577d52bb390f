"""Random programs that call through pointers in every way that kernels do, and how they are built.

Callbacks in lists, in objects and on the stack; tables, written or not; hooks with and without an
initial value; pointers that are handed on, returned, copied, packed, or held as numbers; in C++
virtual functions, members and lambdas beside them. Each runs in ``qemu-arm`` without a library.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

__all__ = ["BUILDS", "build_pointers", "pointer_program"]

START = """\
__asm__(".text\\n.syntax unified\\n%s\\n.balign 4\\n.global _start\\n.type _start, %%function\\n"
        "_start: bl init\\n movs r0, #5\\n bl run\\n movs r7, #1\\nstop: svc #0\\n");
#ifdef __cplusplus
extern "C" {
#endif
void __aeabi_unwind_cpp_pr0(void) { for (;;) ; }
void __aeabi_unwind_cpp_pr1(void) { for (;;) ; }
void __cxa_pure_virtual(void) { for (;;) ; }
void *memset(void *to, int value, unsigned count) {
    for (unsigned i = 0; i < count; i++) { ((volatile char *)to)[i] = value; }
    return to;
}
void *memcpy(void *to, const void *from, unsigned count) {
    for (unsigned i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
void __aeabi_memcpy(void *to, const void *from, unsigned count) { memcpy(to, from, count); }
void __aeabi_memcpy4(void *to, const void *from, unsigned count) { memcpy(to, from, count); }
void __aeabi_memcpy8(void *to, const void *from, unsigned count) { memcpy(to, from, count); }
void __aeabi_memclr4(void *to, unsigned count) { memset(to, 0, count); }
void __aeabi_memclr8(void *to, unsigned count) { memset(to, 0, count); }
#ifdef __cplusplus
}
void operator delete(void *, unsigned) {}
void operator delete(void *) {}
namespace __cxxabiv1 {
struct __class_type_info { virtual void id(); };
struct __si_class_type_info { virtual void id(); };
struct __vmi_class_type_info { virtual void id(); };
void __class_type_info::id() {}
void __si_class_type_info::id() {}
void __vmi_class_type_info::id() {}
}
#endif
#ifdef __cplusplus
#define C_LINKAGE extern "C"
#else
#define C_LINKAGE extern
#endif
#define N __attribute__((noinline))
typedef int (*function)(int);
volatile int sink, choice = 1;
"""
GCC, GXX = "arm-none-eabi-gcc", "arm-none-eabi-g++"
ARM, THUMB = ("-mcpu=arm1136jf-s", "-marm"), ("-mcpu=cortex-a8", "-mthumb")
ARM7 = ("-mcpu=cortex-a8", "-marm")
CLANG = ("clang", "--target=arm-none-eabi")
CLANGXX = ("clang++", "--target=arm-none-eabi")
BUILDS: dict[str, tuple[str, ...]] = {
    "C gcc -O0": (GCC, *ARM, "-O0"),
    "C gcc -O2": (GCC, *ARM, "-O2"),
    "C gcc -Os Thumb-2": (GCC, *THUMB, "-Os"),
    "C gcc -O2 PIE": (GCC, *ARM, "-O2", "-fpie"),
    "C gcc -O2 PIE Thumb-2": (GCC, *THUMB, "-O2", "-fpie"),
    "C gcc -O2 movw": (GCC, *ARM7, "-O2"),
    "C clang -O0": (*CLANG, *ARM, "-O0"),
    "C clang -O2 movw": (*CLANG, *ARM7, "-O2"),
    "C clang -Os Thumb-2": (*CLANG, *THUMB, "-Os"),
    "C clang -O2 PIE": (*CLANG, *ARM, "-O2", "-fpie"),
    "C++ gcc -O0": (GXX, *ARM, "-O0"),
    "C++ gcc -O2": (GXX, *ARM, "-O2"),
    "C++ gcc -Os Thumb-2": (GXX, *THUMB, "-Os"),
    "C++ gcc -O3": (GXX, *ARM, "-O3"),
    "C++ clang -O0 Thumb-2": (*CLANGXX, *THUMB, "-O0"),
    "C++ clang -O2": (*CLANGXX, *ARM, "-O2"),
}


@dataclass(slots=True)
class _Program:
    """The program so far; ``count``: number of used names."""

    random: Random
    text: list[str] = field(default_factory=list)
    begins: list[str] = field(default_factory=list)  # statements of init
    runs: list[str] = field(default_factory=list)  # statements of run
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def function(self) -> str:
        """A function that is called through pointers."""
        name = self.name("f")
        a, b = self.random.randint(2, 9), self.random.randint(1, 99)
        static = self.random.choice(["static ", ""])
        body = self.random.choice([f"return x * {a} + {b};", f"sink += x; return sink ^ {b};"])
        self.text.append(f"N {static}int {name}(int x) {{ {body} }}")
        return name

    def functions(self) -> list[str]:
        return [self.function() for _ in range(self.random.randint(2, 4))]

    def one_of(self, names: list[str]) -> str:
        """An expression that a compiler does not know."""
        first, second = self.random.sample(names, 2)
        return f"(choice ? {first} : {second})"


def pointer_program(seed: int, *, plus: bool) -> str:
    """A program with a few of the shapes; in C++ with ``plus``."""
    random = Random(seed)
    program = _Program(random)
    shapes = SHAPES + PLUS if plus else SHAPES
    for shape in random.sample(shapes, random.randint(3, 6)):
        shape(program)
    if plus and not any("virtual" in text for text in program.text):
        _virtual(program)
    begin, body = ("\n    ".join(lines) for lines in (program.begins, program.runs))
    linkage = 'extern "C" ' if plus else ""
    return "\n".join([
        *program.text,
        f"{linkage}N void init(void) {{\n    {begin}\n    sink = 0;\n}}",
        f"{linkage}N int run(int x) {{\n    {body}\n    sink = x;\n    return x & 63;\n}}\n",
    ])  # fmt: skip


def _array(p: _Program) -> None:
    """A table of functions and an index."""
    names, table = p.functions(), p.name("table")
    const = p.random.choice(["const ", ""])
    p.text.append(f"static int (*{const}{table}[])(int) = {{{', '.join(names)}}};")
    p.text.append(f"N int call_{table}(int i, int x) {{ return {table}[i](x) + 1; }}")
    p.runs.append(f"for (int i = 0; i < {len(names)}; i++) x += call_{table}(i, x);")
    if not const and p.random.random() < 0.5:
        p.begins.append(f"{table}[choice] = {p.function()};")


def _operations(p: _Program) -> None:
    """Structures of functions, found through a pointer in an object, perhaps inside of another."""
    names = [p.function() for _ in range(6)]
    ops, const = p.name("ops"), p.random.choice(["const ", ""])
    p.text.append(f"struct {ops} {{ function open, close; }};")
    rows = [f"{{{names[2 * i]}, {names[2 * i + 1]}}}" for i in range(3)]
    if p.random.random() < 0.5:
        p.text.append(f"{const}struct {ops} all_{ops}[] = {{{', '.join(rows)}}};")
        places = [f"&all_{ops}[{i}]" for i in range(3)]
    else:  # embedded, at another offset in each
        for i, row in enumerate(rows):
            pad = f"int pad[{i + 1}]; "
            p.text.append(f"{const}struct {{ {pad}struct {ops} ops; }} board_{ops}_{i} = "
                          f"{{{{{', '.join('7' * (i + 1))}}}, {row}}};")  # fmt: skip
        places = [f"&board_{ops}_{i}.ops" for i in range(3)]
    p.text.append(f"struct object_{ops} {{ int id; {const}struct {ops} *ops; }};")
    p.text.append(f"struct object_{ops} objects_{ops}[3];")
    p.text.append(
        f"N int use_{ops}(struct object_{ops} *o, int x) "
        "{ return o->ops->open(x) + o->ops->close(x + o->id); }"
    )
    p.begins += [f"objects_{ops}[{i}].ops = {place};" for i, place in enumerate(places)]
    p.runs.append(f"for (int i = 0; i < 3; i++) x += use_{ops}(&objects_{ops}[i], x);")


def _timers(p: _Program) -> None:
    """A list of callbacks, each with an argument, registered while the program runs."""
    names, timer = p.functions(), p.name("timer")
    at = p.random.choice(["struct NAME *next; int left; CALL", "CALL struct NAME *next;",
                          "struct NAME *next; CALL"])  # fmt: skip
    fields = at.replace("NAME", timer).replace("CALL", "void (*fire)(void *); void *arg;")
    p.text.append(f"struct {timer} {{ {fields} }} all_{timer}[4], *first_{timer};")
    for name in names:
        p.text.append(f"N static void on_{name}(void *arg) {{ *(int *)arg += {name}(1); }}")
    p.text.append(
        f"N void add_{timer}(struct {timer} *t, void (*fire)(void *), void *arg) {{ "
        f"t->fire = fire; t->arg = arg; t->next = first_{timer}; first_{timer} = t; }}"
    )
    p.text.append(
        f"N void tick_{timer}(void) {{ for (struct {timer} *t = first_{timer}; t; t = t->next) "
        "t->fire(t->arg); }"
    )
    p.text.append(f"int word_{timer};")
    handlers = [f"on_{name}" for name in names]
    p.begins += [
        f"add_{timer}(&all_{timer}[{i}], {p.one_of(handlers)}, &word_{timer});" for i in range(2)
    ]
    p.runs.append(f"tick_{timer}(); x += word_{timer};")


def _handed_on(p: _Program) -> None:
    """A pointer as an argument, through functions, on the stack, and as a result."""
    names, pump = p.functions(), p.name("pump")
    p.text.append(f"N int {pump}_in(int n, int y, int z, int w, function f, int x) "
                  "{ sink = n + y + z + w; return f(x) + f(x + n); }")  # fmt: skip
    p.text.append(f"N int {pump}(function f, int x) {{ return {pump}_in(1, 2, 3, 4, f, x) + 1; }}")
    p.text.append(f"N function {pump}_chosen(int n) {{ return n & 1 ? {names[0]} : {names[1]}; }}")
    p.runs.append(f"x += {pump}({p.one_of(names)}, x) + {pump}_chosen(x)(x);")


def _tail(p: _Program) -> None:
    """A call at the end of a function."""
    names, tail = p.functions(), p.name("tail")
    p.text.append(f"function {tail}_hook = {names[0]};")
    p.text.append(f"N int {tail}(int x) {{ return {tail}_hook(x + 1); }}")
    p.begins.append(f"if (choice) {tail}_hook = {names[1]};")
    p.runs.append(f"x += {tail}(x);")


def _from_table(p: _Program) -> None:
    """A hook that is set from a table, so that no code has the addresses."""
    names, hook = p.functions(), p.name("hook")
    p.text.append(f"const struct {{ int id; function f; }} known_{hook}[] = "
                  f"{{{', '.join(f'{{{i}, {n}}}' for i, n in enumerate(names))}}};")  # fmt: skip
    p.text.append(f"function {hook} = {p.random.choice(['0', p.function()])};")
    p.text.append(
        f"N void set_{hook}(int id) {{ for (int i = 0; i < {len(names)}; i++) "
        f"if (known_{hook}[i].id == id) {hook} = known_{hook}[i].f; }}"
    )
    p.begins.append(f"set_{hook}(choice);")
    p.runs.append(f"if ({hook}) x += {hook}(x) + 1;")


def _copied(p: _Program) -> None:
    """A structure that is copied to the stack, or by bytes."""
    names, copy = p.functions(), p.name("copy")
    p.text.append(f"struct {copy} {{ int a; function f[2]; int b; }};")
    p.text.append(f"struct {copy} from_{copy} = {{1, {{{names[0]}, {names[1]}}}, 2}}, to_{copy};")
    p.text.append(
        f"N int use_{copy}(const struct {copy} *at, int x) {{ struct {copy} here = *at; "
        "here.a += x; sink = (int)(long)&here; return here.f[x & 1](x) + here.a; }"
    )
    p.begins.append(f"memcpy(&to_{copy}, &from_{copy}, sizeof to_{copy});")
    p.runs.append(f"x += use_{copy}(&to_{copy}, x) + use_{copy}(&from_{copy}, x + 1);")


def _number(p: _Program) -> None:
    """A pointer that is held as a number, or in a packed structure."""
    names, held = p.functions(), p.name("held")
    if p.random.random() < 0.5:
        p.text.append(f"unsigned long {held};")
        p.begins.append(f"{held} = (unsigned long){p.one_of(names)};")
        p.runs.append(f"x += ((function){held})(x) + 1;")
        return
    p.text.append(
        f"struct __attribute__((packed)) {held} {{ char c; function f; }} "
        f"all_{held}[2] = {{{{1, {names[0]}}}, {{2, {names[1]}}}}};"
    )
    p.runs.append(f"for (int i = 0; i < 2; i++) x += all_{held}[i].f(x) + 1;")


def _on_stack(p: _Program) -> None:
    """A table that is made on the stack."""
    names, local = p.functions(), p.name("local")
    p.text.append(
        f"N int {local}(int n, int x) {{ function f[{len(names)}] = {{{', '.join(names)}}}; "
        f"f[n & 1] = {p.function()}; int sum = 0; "
        f"for (int i = 0; i < {len(names)}; i++) sum += f[i](x + n); return sum; }}"
    )
    p.runs.append(f"x += {local}(choice, x);")


def _virtual(p: _Program) -> None:
    """A small hierarchy, whose objects are found through a list."""
    base, random = p.name("Base"), p.random
    second = f"virtual int set(int x) {{ return x + {random.randint(1, 9)}; }}"
    p.text.append(f"struct {base} {{ {base} *next; int word; virtual int get(int x) = 0; {second} "
                  f"virtual int last(int x) {{ return x; }} }};")  # fmt: skip
    p.text.append(f"struct Side{base} {{ int more; virtual int side(int x) {{ return x + 3; }} }};")
    kinds = []
    for i in range(random.randint(2, 4)):
        kind = f"{base}{'xyzw'[i]}"
        above = f"{random.choice(['virtual ', ''])}{base}"
        both = random.random() < 0.4
        above += f", Side{base}" * both
        bodies = [f"int get(int x) override {{ return x * {i + 2} + word; }}"]
        if random.random() < 0.5:
            bodies.append(f"int set(int x) override {{ sink = x; return get(x) + {i}; }}")
        if both:
            bodies.append(f"int side(int x) override {{ return x - {i}; }}")
        p.text.append(f"struct {kind} : {above} {{ {' '.join(bodies)} }};")
        kinds.append((kind, both))
    p.text.append(f"{base} *first_{base}; Side{base} *side_{base}; char room_{base}[8][64] "
                  "__attribute__((aligned(8)));")  # fmt: skip
    if not any("operator new" in text for text in p.text):
        p.text.insert(0, "inline void *operator new(decltype(sizeof 0), void *at) { return at; }")
    for i, (kind, both) in enumerate(kinds):
        p.begins.append(
            f"{{ auto *o = new (room_{base}[{i}]) {kind}; o->next = first_{base}; "
            f"first_{base} = o; {f'side_{base} = o; ' * both}}}"
        )
    p.text.append(
        f"N int walk_{base}({base} *at, int x) {{ for (; at; at = at->next) "
        "x += at->get(x) + at->set(x) + at->last(x); return x; }"
    )
    p.runs.append(f"x += walk_{base}(first_{base}, x);")
    p.runs.append(f"if (side_{base}) x += side_{base}->side(x);")


def _member(p: _Program) -> None:
    """A pointer to a member function, virtual or not, and a lambda as a callback."""
    one = p.name("Member")
    p.text.append(
        f"struct {one} {{ int word; virtual int v(int x) {{ return x + word; }} "
        f"N int plain(int x) {{ return x * 2 + word; }} }};"
    )
    p.text.append(f"struct Sub{one} : {one} {{ int v(int x) override {{ return x - word; }} }};")
    p.text.append(f"char place_{one}[32] __attribute__((aligned(8)));")
    if not any("operator new" in text for text in p.text):
        p.text.insert(0, "inline void *operator new(decltype(sizeof 0), void *at) { return at; }")
    p.text.append(f"int ({one}::*volatile held_{one})(int); {one} *object_{one};")
    p.begins.append(f"object_{one} = new (place_{one}) Sub{one};")
    p.begins.append(f"held_{one} = choice ? &{one}::v : &{one}::plain;")
    p.text.append(
        f"N int call_{one}({one} *o, int ({one}::*f)(int), int x) {{ return (o->*f)(x) + 1; }}"
    )
    p.runs.append(f"x += call_{one}(object_{one}, held_{one}, x);")
    p.runs.append(f"x += call_{one}(object_{one}, &{one}::plain, x);")
    p.text.append(f"N int apply_{one}(function f, int x) {{ return f(x) + 1; }}")
    p.runs.append(f"x += apply_{one}([](int y) {{ sink = y; return y + 9; }}, x);")


def _folded(p: _Program) -> None:
    """Tables beside each other, and indices that compilers fold into their addresses."""
    tables = [p.name("near") for _ in range(3)]
    const = p.random.choice(["const ", "const ", ""])
    for table in tables:
        names = [p.function() for _ in range(3)]
        p.text.append(f"static int (*{const}{table}[3])(int) = {{{', '.join(names)}}};")
    first, second, third = tables
    sum_of_all = f"{second}[i - 1](x) + {third}[i - 3](x) + {first}[i & 1](x)"
    p.text.append(f"N int {first}_use(int i, int x) {{ return {sum_of_all}; }}")
    p.text.append(f"N int {first}_walk(int x) {{ for (unsigned i = 0; i < 3; i++) "
                  f"x += {third}[i](x) + {second}[2 - i](x); return x; }}")  # fmt: skip
    p.runs.append(f"x += {first}_use(3, x) + {first}_walk(x);")


def _section(p: _Program) -> None:
    """Pointers that the linker collects, like constructors and initial calls."""
    names, calls = p.functions(), p.name("calls")
    for name in names:
        p.text.append(
            f'__attribute__((section("{calls}"), used)) int (*{calls}_{name})(int) = {name};'
        )
    p.text.append(f"C_LINKAGE function __start_{calls}[], __stop_{calls}[];")
    p.runs.append(f"for (function *at = __start_{calls}; at < __stop_{calls}; at++) x += (*at)(x);")


def _typed(p: _Program) -> None:
    """Pointers of several types beside each other: in objects, drivers and tables."""
    names, other = p.functions(), p.name("typed")
    p.text += [
        f"N static int {other}_two_{n}(int x, int y) {{ return {n}(x) + y; }}" for n in names
    ]
    two = [f"{other}_two_{n}" for n in names]
    p.text.append(f"struct node_{other} {{ struct node_{other} *next; }};")
    fields = [
        "int (*first)(int, int);",
        f"struct node_{other} node;",
        "function second;",
        "int id;",
    ]
    p.random.shuffle(fields)
    p.text.append(f"struct item_{other} {{ {' '.join(fields)} }} items_{other}[2];")
    p.text.append(f"struct driver_{other} {{ function get; int (*put)(int, int); }};")
    rows = ", ".join(f"{{{a}, {b}}}" for a, b in zip(names, two, strict=True))
    p.text.append(f"static struct driver_{other} drivers_{other}[] = {{{rows}}};")
    p.text.append(f"static int (*ones_{other}[])(int) = {{{', '.join(names)}}};")
    p.text.append(f"static int (*twos_{other}[])(int, int) = {{{', '.join(two)}}};")
    p.text.append(
        f"N int walk_{other}(struct node_{other} *at, int x) {{ for (; at; at = at->next) {{ "
        f"struct item_{other} *i = (struct item_{other} *)((char *)at - "
        f"__builtin_offsetof(struct item_{other}, node)); x += i->first(x, 1) + i->second(x); }} "
        "return x; }"
    )
    p.text.append(
        f"N int each_{other}(int x) {{ for (struct driver_{other} *d = drivers_{other}; "
        f"d < drivers_{other} + {len(names)}; d++) x += d->put(x, 2) + d->get(x); return x; }}"
    )
    p.text.append(
        f"N int one_{other}(int i, int x, int (*given)(int, int), struct driver_{other} *d) {{ "
        f"return given(x, 1) + d[i - 1].get(x) + ones_{other}[i - 1](x) "
        f"+ twos_{other}[i - 2](x, 3) + drivers_{other}[i - 1].put(x, 4); }}"
    )
    for item in (f"items_{other}[{i}]" for i in range(2)):
        p.begins.append(f"{item}.first = {p.one_of(two)}; {item}.second = {p.one_of(names)};")
    p.begins.append(f"items_{other}[0].node.next = &items_{other}[1].node;")
    p.begins.append(f"if (choice) twos_{other}[1] = {two[0]};")
    p.runs.append(f"x += walk_{other}(&items_{other}[0].node, x) + each_{other}(x);")
    p.runs.append(f"x += one_{other}(2, x, {p.one_of(two)}, drivers_{other});")


SHAPES: tuple[Callable[[_Program], None], ...] = (
    _array, _operations, _timers, _handed_on, _tail, _from_table, _copied, _number, _on_stack,
    _folded, _section, _typed,
)  # fmt: skip
PLUS: tuple[Callable[[_Program], None], ...] = (_virtual, _member)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quoll-pointers-")


def build_pointers(source: str, build: tuple[str, ...], assembly: str = "") -> Path:
    """The program, linked at 0x8000 with a file in assembly language."""
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    plus = build[0].endswith("++")
    name = "prog.cpp" if plus else "prog.c"
    start = START % (".thumb\\n.thumb_func" if "-mthumb" in build else ".arm")
    (folder / name).write_text(start + source)
    compiler, *options = build
    options += ["-ffreestanding", "-fno-exceptions", "-fno-threadsafe-statics"][: 3 if plus else 1]
    _run([compiler, "-g", *options, "-w", "-c", name, "-o", "prog.o"], folder)
    link = ["-nostdlib", "-Wl,-Ttext=0x8000", "-Wl,-e,_start", "-Wl,--no-warn-rwx-segments"]
    cpu = next(option for option in options if option.startswith("-mcpu"))
    (folder / "more.S").write_text(assembly)
    _run([GCC, "-g", cpu, *link, "prog.o", "more.S", "-lgcc", "-o", "prog.elf"], folder)
    return folder / "prog.elf"


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
