"""Random preemptible kernels in four styles, for the concrete machine and for QEMU's boards.

- locks: C; interrupts are masked inline and out of line, one lock inside of another, in loops;
- drivers: C++; a virtual method of one of several drivers runs with interrupts masked;
- switches: C; threads are switched with interrupts masked;
- masks: as locks, where the mask is saved and restored in another way.

Each has ``main(n)``, a system call that runs unmasked except under a lock, and ``handler``.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random

from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import load
from quoll.image.image import Image

__all__ = ["BUILDS", "STYLES", "Kernel", "random_kernel"]

STYLES = ("locks", "drivers", "switches", "masks")
GCC = ("-ffreestanding", "-nostdlib", "-fno-exceptions", "-fno-rtti", "-g")
BUILDS = {  # compiler, instruction set: the command, and the platform
    "gcc arm": (("arm-none-eabi-g++", "-mcpu=arm1136jf-s", "-marm"), "kzm"),
    "gcc thumb": (("arm-none-eabi-g++", "-mcpu=cortex-a8", "-mthumb"), "cubieboard"),
    "clang arm": (("clang++", "--target=arm-none-eabi", "-mcpu=arm1136jf-s", "-marm"), "kzm"),
    "clang thumb": (
        ("clang++", "--target=arm-none-eabi", "-mcpu=cortex-a8", "-mthumb"),
        "cubieboard",
    ),
}
LEVELS = ("-O1", "-O2", "-Os")
PLACES = {  # where it is linked: .text, vectors
    "board": (0xF0010000, 0xFFFF0000),
    "qemu": (0x10000, 0),
}
FRAME = """
.syntax unified
.section .vectors, "ax"
.arm
.global vector_undefined, vector_svc, vector_prefetch_abort, vector_data_abort, vector_irq
.global exit_to_user, exit_to_user_1, exit_to_user_2, exit_to_user_3, exit_to_user_4
    b reset
vector_undefined: exit_to_user_1: movs pc, lr
vector_svc: ldr pc, =entry_svc
vector_prefetch_abort: exit_to_user_2: movs pc, lr
vector_data_abort: exit_to_user_3: movs pc, lr
    nop
vector_irq: ldr pc, =entry_irq
reset: ldr pc, =boot
.ltorg
.text
.arm
.type entry_svc, %function
.type entry_irq, %function
entry_svc:
    ldr sp, =stack_top
    push {r4-r11, lr}
    cpsie i
    bl main
    cpsid i
    pop {r4-r11, lr}
exit_to_user: movs pc, lr
entry_irq:
    sub lr, lr, #4
    ldr sp, =interrupt_top
    push {r0-r12, lr}
    bl handler
    pop {r0-r12, lr}
exit_to_user_4: movs pc, lr
.global change
.type change, %function
change:
    stmia r0, {r4-r11, sp, lr}
    ldmia r1, {r4-r11, sp, pc}
.ltorg
.bss
.align 3
.space 8192
stack_top: .space 8
.space 8192
interrupt_top: .space 8
.text
"""
# A board that has a timer and nothing else runs: with an instruction a tick, it counts instructions
# from the moment at which the interrupt is pending.
BOOT = """
.arm
boot:
    msr cpsr_c, #0xdf
    ldr sp, =user_top
    bl arrivals
0:  b 0b
.global make_call, put_text
.type make_call, %function
.type put_text, %function
make_call:
    push {r4-r11, lr}
    svc #0
    pop {r4-r11, pc}
put_text:
    push {lr}
    mov r1, r0
    mov r0, #4
    svc #0x123456
    pop {pc}
.global stop
.type stop, %function
stop:
    mov r0, #0x18
    ldr r1, =0x20026
    svc #0x123456
.ltorg
.bss
.align 3
.space 4096
user_top: .space 8
.text
"""
NO_BOOT = ".arm\nboot: b boot\n"
LOCKS = """
#define NOINLINE __attribute__((noinline))
extern "C" {
extern volatile unsigned cells[64], ticks;
volatile unsigned cells[64], ticks;
unsigned place[16];
void change(unsigned *from, unsigned *to);
static inline unsigned state(void) {
    unsigned word;
    __asm__ volatile("mrs %0, cpsr" : "=r"(word) : : "memory");
    return word;
}
static inline void set(unsigned word) {
    __asm__ volatile("msr cpsr_c, %0" : : "r"(word) : "memory");
}
static inline void off(void) { __asm__ volatile("cpsid i" : : : "memory"); }
static inline void on(void) { __asm__ volatile("cpsie i" : : : "memory"); }
"""
PLAIN = """
static inline unsigned save(void) {
    unsigned flags;
    __asm__ volatile("mrs %0, cpsr\\n cpsid i" : "=r"(flags) : : "memory");
    return flags;
}
static inline void restore(unsigned flags) { set(flags); }
"""
SAVED = (
    """
static inline unsigned save(void) { unsigned flags = state(); off(); return flags; }
static inline void restore(unsigned flags) { if (!(flags & 0x80)) on(); }
""",
    """
static inline unsigned save(void) { unsigned flags = state() & 0x80; off(); return flags; }
static inline void restore(unsigned flags) { set((state() & ~0x80u) | flags); }
""",
    """
static inline unsigned save(void) { unsigned flags = state(); set(flags | 0x80); return flags; }
static inline void restore(unsigned flags) { set(flags); }
""",
    """
static inline unsigned save(void) { unsigned open = !(state() >> 7 & 1); off(); return open; }
static inline void restore(unsigned open) { if (open) on(); }
""",
)
OUT_OF_LINE = """
NOINLINE unsigned take(void) { return save(); }
NOINLINE void give(unsigned flags) { restore(flags); }
"""
TIMER = """
#define TIMER(at) (*(volatile unsigned *)(0x101E2000u + at))
#define CONTROLLER(at) (*(volatile unsigned *)(0x10140000u + at))
volatile unsigned seen, fired, most, waited;
unsigned draw_state = SEED;
void make_call(unsigned n);
void put_text(const char *text);
void stop(void);
static unsigned draw(void) { return (draw_state = draw_state * 1103515245u + 12345u) >> 8; }
static inline void arrived(void) {
    unsigned late = waited - TIMER(4);
    TIMER(8) = 0;
    TIMER(12) = 1;
    if (late > most) most = late;
    seen++;
    fired = 1;
}
NOINLINE void number(unsigned value) {
    char text[12];
    unsigned at = 11;
    text[at] = 0;
    do { unsigned rest = value, tens = 0; while (rest >= 10) { rest -= 10; tens++; }
        text[--at] = (char)('0' + rest); value = tens; } while (value);
    put_text(text + at);
}
void arrivals(void) {
    CONTROLLER(16) = 1u << 4;
    for (unsigned i = 0; i < ARRIVALS; i++) {
        waited = 6000 + (draw() & 4095); /* then it counts down from there again */
        fired = 0;
        TIMER(0) = waited;
        TIMER(8) = 0xE2;
        while (!fired) make_call(draw() & 63);
    }
    number(seen); put_text(" arrivals, at most "); number(most); put_text(" instructions\\n");
    stop();
}
"""
NO_TIMER = "static inline void arrived(void) {}\n"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program, the platform of its board, and the facts that it takes."""

    elf: Path
    platform: str
    facts: Path


def random_kernel(
    seed: int, style: str, build: str, folder: Path, place: str = "board", arrivals: int = 0
) -> Kernel:
    """The kernel of a seed; ``qemu`` runs by itself on a board of QEMU, with so many arrivals."""
    command, platform = BUILDS[build]
    source = _Writer(seed, style).program(arrivals)
    name = f"{style}-{build.replace(' ', '-')}-{place}-{seed}"
    (folder / f"{name}.cpp").write_text(source)
    (folder / f"{name}.S").write_text(FRAME + (BOOT if place == "qemu" else NO_BOOT))
    level = Random(f"level {seed}").choice(LEVELS)
    text, vectors = PLACES[place]
    objects = []
    for file, more in ((f"{name}.cpp", (level, "-std=gnu++17")), (f"{name}.S", ())):
        compiled = f"{file}.o"
        _run((*command, *GCC, *more, "-c", file, "-o", compiled), folder)
        objects.append(compiled)
    _run(
        (
            *("arm-none-eabi-gcc", "-nostdlib", f"-Wl,-Ttext={text:#x}", "-Wl,-e,vector_undefined"),
            f"-Wl,--section-start=.vectors={vectors:#x}",
            *("-Wl,--build-id=none,--no-warn-rwx-segments", "-o", f"{name}.elf", *objects, "-lgcc"),
        ),
        folder,
    )
    elf = folder / f"{name}.elf"
    facts = folder / f"{name}.facts"
    facts.write_text(_facts(elf, facts))
    return Kernel(elf, platform, facts)


def _run(command: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _facts(elf: Path, file: Path) -> str:
    """The facts that extraction needs, as the kernel's author would state them."""
    image = Image.load(elf)
    entries = [s.addr for n in ("vector_svc", "vector_irq") if (s := image.symbol(n)) is not None]
    lines = ["change switches context\n"]
    ends = frozenset(s.addr for n in image.symbols.names() if n.startswith("exit_to_user")
                     and (s := image.symbol(n)) is not None)  # fmt: skip
    for _ in range(8):
        file.write_text("".join(lines))
        asked = extract(image, entries, locate(load((file,)), image), ends).unresolved
        new = []
        for one in asked:
            if "returns to its caller" in one.hint:
                new.append(f"{one.addr:#x} returns to its caller\n")
            else:
                new.append(f"calls at {one.addr:#x} go through any vtable\n")
        if not new:
            break
        lines += new
    return "".join(lines)


class _Writer:
    """Draws functions of which some hold locks."""

    def __init__(self, seed: int, style: str) -> None:
        self.draw, self.style, self.seed = Random(f"masks {seed} {style}"), style, seed
        self.names = 0

    def program(self, arrivals: int) -> str:
        numbers = f"#define SEED {self.seed}u\n#define ARRIVALS {arrivals}u\n"
        save = self.draw.choice(SAVED) if self.style == "masks" else PLAIN
        parts = [numbers, LOCKS, save, OUT_OF_LINE, TIMER if arrivals else NO_TIMER]
        parts.append("void handler(void) { arrived(); ticks++;" + self.loop("ticks") + "}\n")
        if self.style == "drivers":
            parts.append(self.drivers())
        for number in range(3):
            callees = [f"f{n}" for n in range(number)]
            parts.append(f"NOINLINE unsigned f{number}(unsigned n) {{\n")
            parts.append(self.body(callees, 2) + "return cells[n & 63];\n}\n")
        parts.append('unsigned main_call(unsigned n) __asm__("main");\n')
        parts.append("unsigned main_call(unsigned n) {\n" + self.body(["f0", "f1", "f2"], 2))
        parts.append("return f2(n);\n}\n}\n")
        return "".join(parts)

    def drivers(self) -> str:
        """A hierarchy, and a table of its objects."""
        count = self.draw.randrange(2, 5)
        parts = ["}\nstruct Driver { virtual void act(unsigned n) = 0; };\n"]
        parts.append('extern "C" void __cxa_pure_virtual() { for (;;) ; }\n')
        for number in range(count):
            parts.append(f"struct D{number} : Driver {{ void act(unsigned n) override {{")
            parts.append(self.body([], 1) + "} };\n")
        parts += [f"D{n} d{n};\n" for n in range(count)]
        table = ", ".join(f"&d{n}" for n in range(count))
        parts.append(f"Driver *const drivers[{count}] = {{{table}}};\n")
        parts.append(f"enum {{ DRIVERS = {count} }};\n")
        parts.append('extern "C" {\n')
        return "".join(parts)

    def body(self, callees: list[str], depth: int) -> str:
        return "".join(self.statement(callees, depth) for _ in range(self.draw.randrange(1, 4)))

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def loop(self, value: str) -> str:
        index, most = self.name(), self.draw.choice([1, 2, 5, 9, 16])
        limit = self.draw.choice([str(most), f"({value} & {self.draw.choice([3, 7, 15])})"])
        change = self.draw.choice(["++", f" ^= {index}", f" += {value}"])
        cell = f"cells[({index} * {self.draw.choice([1, 3, 8])}) & 63]"
        return f"for (unsigned {index} = 0; {index} < {limit}; {index}++) {cell}{change};\n"

    def statement(self, callees: list[str], depth: int) -> str:
        kind = self.draw.randrange(8 if depth else 3)
        if kind == 0 and callees:
            return f"{self.draw.choice(callees)}(n + {self.draw.randrange(9)});\n"
        if kind <= 2:
            return self.loop("n")
        inside = self.body(callees, depth - 1)
        if kind == 3:
            return f"if (n & {1 << self.draw.randrange(5)}) {{\n{inside}}}\n"
        if self.style == "drivers" and callees and kind == 4:
            return (
                "{ unsigned flags = save(); drivers[n < DRIVERS ? n : 0]->act(n); "
                "restore(flags); }\n"
            )
        if self.style == "switches" and callees and kind == 4:
            flags = self.name()
            return f"{{ unsigned {flags} = save(); change(place, place); restore({flags}); }}\n"
        flags = self.name()
        take, give = self.draw.choice([("save", "restore"), ("take", "give")])
        return f"{{ unsigned {flags} = {take}();\n{inside}{give}({flags}); }}\n"
