"""Random C++ programs with class hierarchies and tables of drivers, and how they are built.

Each runs in ``qemu-arm`` without a library. ``_start`` runs the constructors of static objects, as
kernels do.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

__all__ = ["BUILDS", "build_virtual", "virtual_program"]

START = """\
__asm__(".text\\n.syntax unified\\n%s\\n.balign 4\\n.global _start\\n.type _start, %%function\\n"
        "_start: bl construct\\n movs r0, #5\\n bl run\\n movs r7, #1\\nstop: svc #0\\n");
extern "C" {
typedef void (*function)();
extern function __init_array_start[], __init_array_end[];
void construct() {
    for (function *at = __init_array_start; at < __init_array_end; at++) (*at)();
}
void __cxa_pure_virtual() { for (;;) ; }
void __gxx_personality_v0() { for (;;) ; }
void __cxa_end_cleanup() { for (;;) ; }
void __aeabi_unwind_cpp_pr0() { for (;;) ; }
void __aeabi_unwind_cpp_pr1() { for (;;) ; }
int __aeabi_atexit(void *, void (*)(void *), void *) { return 0; }
int __cxa_atexit(void (*)(void *), void *, void *) { return 0; }
void *__dso_handle;
void *memset(void *to, int value, unsigned count) {
    for (unsigned i = 0; i < count; i++) { ((volatile char *)to)[i] = value; }
    return to;
}
void *memcpy(void *to, const void *from, unsigned count) {
    for (unsigned i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
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
#define N __attribute__((noinline))
volatile int sink;
"""
BUILDS = {
    "gcc -O0": ("arm-none-eabi-g++", "-mcpu=arm1136jf-s", "-marm", "-O0"),
    "gcc -O2": ("arm-none-eabi-g++", "-mcpu=arm1136jf-s", "-marm", "-O2"),
    "gcc -Os": ("arm-none-eabi-g++", "-mcpu=arm1136jf-s", "-marm", "-Os"),
    "gcc -O2 ARMv4T": ("arm-none-eabi-g++", "-mcpu=arm7tdmi", "-marm", "-O2"),
    "gcc -O0 Thumb-2": ("arm-none-eabi-g++", "-mcpu=cortex-a8", "-mthumb", "-O0"),
    "gcc -O2 Thumb-2": ("arm-none-eabi-g++", "-mcpu=cortex-a8", "-mthumb", "-O2"),
    "gcc -Os Thumb-2": ("arm-none-eabi-g++", "-mcpu=cortex-a8", "-mthumb", "-Os"),
    "clang -O0": ("clang++", "--target=arm-none-eabi", "-mcpu=arm1136jf-s", "-marm", "-O0"),
    "clang -O2": ("clang++", "--target=arm-none-eabi", "-mcpu=arm1136jf-s", "-marm", "-O2"),
    "clang -Os Thumb-2": ("clang++", "--target=arm-none-eabi", "-mcpu=cortex-a8", "-mthumb", "-Os"),
}


@dataclass
class _Class:
    name: str
    methods: dict[str, int]  # all that it has, with their ranks
    roots: frozenset[str]  # itself and all above
    pure: frozenset[str]  # methods without a body
    is_root: bool = False
    diamond: bool = False  # all bases are virtual


def virtual_program(seed: int, classes: int = 20) -> str:
    """A program of about so many classes. No method calls one of the same or a higher rank."""
    random = Random(seed)
    made: list[_Class] = []
    text: list[str] = []
    roots = random.randint(2, 5)
    for number in range(classes):
        made.append(_class(random, number, made, text, root=number < roots))
    body = [_tables(random, text)]
    concrete = [c for c in made if not c.pure]
    text.append("\n".join(f"static {c.name} object_{c.name};" for c in concrete))
    for root in (c for c in made[:roots]):
        below = [c for c in concrete if root.name in c.roots]
        if not below:
            continue
        pointers = ", ".join(f"&object_{c.name}" for c in below)
        text.append(f"{root.name} *volatile all_{root.name}[] = {{{pointers}}};")
        calls = " + ".join(f"at->{m}(x + {r})" for m, r in root.methods.items())
        text.append(f"N int each_{root.name}({root.name} *at, int x) {{ return {calls}; }}")
        last = next(iter(root.methods))
        text.append(f"N int last_{root.name}({root.name} &at, int x) {{ return at.{last}(x); }}")
        body.append(
            f"for ({root.name} *volatile &at : all_{root.name}) "
            f"x += each_{root.name}(at, x) + last_{root.name}(*at, x);"
        )
    random.shuffle(body)
    run = "\n    ".join(body)
    text.append(f'extern "C" N int run(int x) {{\n    {run}\n    sink = x;\n    return x & 63;\n}}')
    return "\n".join(text) + "\n"


def _class(
    random: Random, number: int, made: list[_Class], text: list[str], *, root: bool
) -> _Class:
    name = f"C{number}"
    if root:
        made_root, bodies = _root(random, number)
        text.append(f"struct {name} {{ int d{number}; {' '.join(bodies)} }};")
        return made_root
    first = random.choice(made)
    bases = [first]
    virtual = random.random() < 0.3
    if random.random() < 0.4:
        bases += random.sample(_besides(made, first), 1)[:1] if _besides(made, first) else []
    shared = set.intersection(*(set(base.methods) for base in bases)) if bases[1:] else set()
    methods = {m: r for base in bases for m, r in base.methods.items()}
    pure = {m for base in bases for m in base.pure}
    bodies = []
    for m, rank in methods.items():
        if m in pure or m in shared or random.random() < 0.5:
            lower = [o for o, r in methods.items() if r < rank and o not in shared]
            call = f" + {random.choice(lower)}(x)" if lower and random.random() < 0.4 else ""
            bodies.append(f"int {m}(int x) override {{ return x + {number * 7}{call}; }}")
    if random.random() < 0.4:
        own = random.choice(list(methods))
        bodies.append(f"virtual int m{number}_n(int x) {{ return {own}(x) - {number}; }}")
        methods[f"m{number}_n"] = max(methods.values()) + 1
    head = ", ".join(f"{'virtual ' if virtual else ''}{b.name}" for b in bases)
    text.append(f"struct {name} : {head} {{ int d{number}; {' '.join(bodies)} }};")
    above = frozenset(r for b in bases for r in b.roots | {b.name})
    diamond = virtual and all(b.is_root or b.diamond for b in bases)
    return _Class(name, methods, above | {name}, frozenset(), diamond=diamond)


def _root(random: Random, number: int) -> tuple[_Class, list[str]]:
    methods = {f"m{number}_{i}": i for i in range(random.randint(1, 4))}
    bodies = [
        f"virtual int {m}(int x) {{ return x * {r + 2} + {number}; }}" for m, r in methods.items()
    ]
    pure: frozenset[str] = frozenset()
    if random.random() < 0.3:
        bodies[-1] = bodies[-1].partition("{")[0] + "= 0;"
        pure = frozenset([f"m{number}_{len(methods) - 1}"])
    if random.random() < 0.3:
        bodies.insert(0, f"virtual ~C{number}() {{ sink = {number}; }}")
    name = f"C{number}"
    return _Class(name, methods, frozenset([name]), pure, is_root=True), bodies


def _besides(made: list[_Class], first: _Class) -> list[_Class]:
    """Possible second bases: another hierarchy, or the other side of a diamond."""
    return [
        c
        for c in made
        if c.name not in first.roots
        and first.name not in c.roots
        and (c.roots.isdisjoint(first.roots) or (c.diamond and first.diamond))
    ]


def _tables(random: Random, text: list[str]) -> str:
    """Drivers in a table, of one of the shapes that kernels use; the loop that calls them."""
    count = random.randint(2, 6)
    const = random.choice(["const ", ""])
    for i in range(count):
        for what in ("probe", "irq"):
            text.append(f"static N int {what}_{i}(int x) {{ return x * {i + 3} + sink; }}")
    rows = ", ".join(f'{{"d{i}", probe_{i}, irq_{i}}}' for i in range(count))
    text.append("struct Driver { const char *name; int (*probe)(int); int (*irq)(int); };")
    match random.randrange(4):
        case 0:
            text.append(f"static {const}Driver drivers[] = {{{rows}}};")
            return (
                f"for (int i = 0; i < {count}; i++) "
                "{ x += drivers[i].probe(x); x += drivers[i].irq(x); }"
            )
        case 1:
            text.append(f"static {const}Driver drivers[] = {{{rows}}};")
            text.append(f"struct Device {{ int id; {const}Driver *driver; }};")
            devices = ", ".join(f"{{{i}, &drivers[{i}]}}" for i in range(count))
            text.append(f"static Device devices[] = {{{devices}}};")
            text.append("N int poll(Device *d, int x) { return d->driver->irq(x + d->id); }")
            return "for (Device &d : devices) x += d.driver->probe(x) + poll(&d, x);"
        case 2:
            text.append(f"static {const}Driver drivers[] = {{{rows}}};")
            text.append(
                f"N {const}Driver *find(int id) {{ return &drivers[id % {count}u]; }}"
                if count & (count - 1) == 0
                else f"N {const}Driver *find(int id) {{ return &drivers[id & 1]; }}"
            )
            return f"for (int i = 0; i < {count}; i++) {{ auto *d = find(i); x += d->irq(x); }}"
    names = ", ".join(f"irq_{i}" for i in range(count))
    text.append(f"static int (*{const}handlers[])(int) = {{{names}}};")
    text.append("static int (*chosen[4])(int);")
    text.append(
        "N int dispatch(int n, int x) { return handlers[n](x) + (chosen[n & 3] ? chosen[n & 3](x) "
        ": 0); }"
    )
    return f"chosen[1] = probe_0; for (int i = 0; i < {count}; i++) x += dispatch(i, x);"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quoll-virtual-")


def build_virtual(source: str, build: tuple[str, ...], *flags: str) -> Path:
    """The program, linked at 0x8000."""
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    start = START % (".thumb\\n.thumb_func" if "-mthumb" in build else ".arm")
    (folder / "prog.cpp").write_text(start + source)
    compiler, *options = build
    options += ["-ffreestanding", "-fno-threadsafe-statics", "-Wno-all", *flags]
    _run([compiler, *options, "-g", "-c", "prog.cpp", "-o", "prog.o"], folder)
    link = ["-nostdlib", "-Wl,-Ttext=0x8000", "-Wl,-e,_start", "-Wl,--no-warn-rwx-segments"]
    cpu = next(option for option in options if option.startswith("-mcpu"))
    _run(["arm-none-eabi-gcc", cpu, *link, "prog.o", "-lgcc", "-o", "prog.elf"], folder)
    return folder / "prog.elf"


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
