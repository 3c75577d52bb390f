"""Candidates of calls by the types in the debug information."""

from __future__ import annotations

import re
import subprocess

import pytest

from quoll.cfg.unresolved import CandidateFact
from quoll.extraction.extract import extract
from quoll.image.dwarf_types import Signature
from quoll.image.image import Image
from tests.testing.programs import needs
from tests.testing.quoll.building import address, build
from tests.testing.quoll.pointer_programs import BUILDS, build_pointers


def proposed(image: Image, function: str) -> CandidateFact:
    """The proposal for the only call of a function that is not resolved."""
    symbol = image.symbol(function)
    assert symbol is not None
    (call,) = extract(image, [symbol.addr | symbol.thumb]).unresolved
    assert call.proposal is not None
    return call.proposal


SOURCE = """
typedef struct queue queue;
struct queue { int count; void (*notify)(queue *); int (*peek)(queue *); };
struct device { int (*read)(int, char *, int); int (*write)(int, char *, int); } devices[4];
queue *the_queue; int (*hook)(void); void *leaked[] = {devices, &hook};
static int uart(void) { return sink; }
static int keys(void) { return sink + 1; }
static int read_it(int d, char *b, int n) { return d + n; }
static int write_it(int d, char *b, int n) { return d - n; }
static void wake(queue *q) { q->count++; }
static void any(void *q) { sink++; }
static int peek(queue *q) { return q->count; }
static int thread(void *p) { for (;;) sink++; }
int (*threads[])(void *) = {thread};
N int pump(int n, int (*get)(void)) { return get() + n; }
N int use(unsigned d) { return d < 4 && devices[d].read ? devices[d].read(1, 0, 2) + 1 : 0; }
N int send(void) { queue *q = the_queue; if (q->notify) q->notify(q); return q->count; }
N int hooked(void) { return hook() + 1; }
N int raw(unsigned long word) { return ((function)word)(3) + 1; }
void init(void) {
    devices[1] = (struct device){read_it, write_it};
    the_queue->notify = choice ? wake : (void (*)(queue *))any; the_queue->peek = peek;
    hook = choice ? uart : keys;
}
int run(int x) {
    return pump(x, choice ? uart : keys) + use(x) + send() + hooked() + raw((unsigned long)thread);
}
"""
EXPECTED = {
    "pump": "calls at PLACE go to keys, uart",
    "use": "calls at PLACE go to read_it, write_it",
    "send": "calls at PLACE go to any, wake",
    "hooked": "calls at PLACE go to keys, uart",
}
NAMES = ("C gcc -O2", "C gcc -Os Thumb-2", "C gcc -O2 movw", "C clang -O2 movw")


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
def test_only_functions_of_the_type_are_candidates(name: str) -> None:
    """A pointer to void fits any pointer, and a number that is cast to a pointer has no type."""
    image = Image.load(build_pointers(SOURCE, BUILDS[name]))
    found = {}
    for function in ("pump", "use", "send", "hooked", "raw"):
        proposal = proposed(image, function)
        found[function] = proposal.fact
        typed = "by the debug information" in proposal.note
        assert typed is (function in EXPECTED)
    everything = found.pop("raw")
    if "clang" in name:  # devices stand beside other variables
        assert found.pop("use") == "calls at PLACE go to keys, peek, read_it, uart, write_it"
    assert found.items() <= EXPECTED.items()
    assert all(name in everything for name in ("uart", "peek", "thread", "wake"))


DERIVED = """
typedef struct machine machine;
typedef unsigned char (*state)(machine *, int);
struct machine { state now, next; };
typedef struct { machine base; int count; } active;
typedef struct { active base; int level; } lamp;
struct other { int count; machine *member; }; struct apart { int x; };
typedef int (*command)(int, char *);
static unsigned char on(lamp *me, int e);
static unsigned char off(lamp *me, int e) { me->base.base.next = (state)on; return e; }
static unsigned char on(lamp *me, int e) { me->level++; return 2; }
static unsigned char plain(machine *me, int e) { return 0; }
static unsigned char stranger(struct other *me, int e) { return me->count + e; }
static unsigned char third(struct apart *me, int e) { return me->x + e; }
static int set(int n, char *text) { return n + *text; }
static int get(unsigned short n, char *text) { return n + *text; }
lamp lamps[2] = {{{{(state)off, (state)on}}}, {{{(state)off, (state)stranger}}}};
struct { const char *name; command run; } commands[] = {{"set", set}, {"get", (command)get}};
void *leaked[] = {lamps, commands, (void *)third};
machine *volatile current;
N int dispatch(int e) { machine *m = current; return m->now(m, e) + 1; }
N int execute(int n) { return commands[n & 1].run(n, "x") + 1; }
void init(void) { current = &lamps[choice & 1].base.base; current->next = plain; }
int run(int x) { return dispatch(x) + execute(x); }
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
def test_a_pointer_to_a_structure_may_lead_to_a_larger_one(name: str) -> None:
    """It begins with the smaller one; and what initial data holds is cast in any case."""
    image = Image.load(build_pointers(DERIVED, BUILDS[name]))
    found = {}
    for function in ("dispatch", "execute"):
        proposal = proposed(image, function)
        found[function] = proposal.fact
    assert found["dispatch"] == "calls at PLACE go to off, on, plain, stranger"
    near = "off, on, plain, " if "clang" in name else ""  # lamps stand beside commands
    more = ", stranger" if near else ""
    assert found["execute"] == f"calls at PLACE go to get, {near}set{more}"


INDEXED = """
struct handler { void (*serve)(void *, unsigned); void *what; } served[96];
struct { unsigned char state; unsigned short more; } protocol; unsigned next;
void *leaked = served; volatile unsigned long held; static void hold(unsigned long f) { held = f; }
static void uart(void *what, unsigned n) { sink += n; }
static void timer(void *what, unsigned n) { sink -= n; }
static int other(int x) { return x + sink; }
static void thread(void *p) { for (;;) sink++; }
void init(void) { served[3] = (struct handler){uart}; served[choice & 7].serve = timer; }
N int by_device(void) {
    unsigned n = *(volatile unsigned *)0x1e00010c & 63;
    if (served[n].serve) served[n].serve(0, n);
    return 1;
}
N int by_byte(void) { served[protocol.state & 63].serve(0, 1); return 1; }
N int by_number(void) { served[next & 63].serve(0, 2); return 1; }
N int by_null(void) {
    struct handler *h = choice & 8 ? &served[next & 63] : 0;
    void (*f)(void *, unsigned) = 0;
    if (h) f = h->serve;
    if (f) f(0, 3);
    return 1;
}
int run(int x) {
    hold((unsigned long)thread); hold((unsigned long)other);
    return by_device() + by_byte() + by_number() + by_null();
}
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
def test_an_index_has_no_type(name: str) -> None:
    """It comes from a device, from a byte, or from a number; and the pointer may be null."""
    image = Image.load(build_pointers(INDEXED, BUILDS[name]))
    for function in ("by_device", "by_byte", "by_number", "by_null"):
        proposal = proposed(image, function)
        assert proposal.fact == "calls at PLACE go to timer, uart", function


THROUGH = """
struct ops { int (*send)(int *, int); int (*poll)(int *); void (*reset)(int *); };
struct port { const struct ops *ops; int count; } ports[2], *volatile ready;
struct handler { short kind; void (*input)(struct port *, int *); };
static int send(int *p, int n) { return *p + n; }
static int poll(int *p) { return *p; }
static void reset(int *p) { *p = 0; }
static const struct ops all = {send, poll, reset};
static void arp(struct port *p, int *d) { p->count += *d; }
static void any(struct port *p, int *d) { p->count -= *d; }
static void tick(void *p) { sink++; }
void (*volatile ticks[2])(void *) = {tick, 0};
static const struct handler handlers[] = {{6, arp}, {8, any}, {0, any}};
N static int output(struct port *p, int *d) { *d += sink; return p->ops->send(d, 2) + p->count; }
N int by_member(int *d) { return output(ready, d) + 1; }
N int by_walk(int kind, int *d) {
    const struct handler *h = handlers;
    while (h->kind && h->kind != kind) h++;
    h->input(ready, d);
    return kind;
}
void init(void) { ports[0].ops = &all; ready = &ports[0]; }
int run(int x) { return by_member(&x) + by_walk(x, &x); }
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("function", "callees"), [("by_member", "send"), ("by_walk", "any, arp")])
def test_members_and_rows_have_their_type(name: str, function: str, callees: str) -> None:
    """A parameter of a static function, through two members; a pointer that a loop advances."""
    image = Image.load(build_pointers(THROUGH, BUILDS[name]))
    symbol = image.symbol(function)
    assert symbol is not None
    calls = extract(image, [symbol.addr | symbol.thumb]).unresolved
    found = [call.proposal.fact for call in calls if call.proposal]
    assert found == [f"calls at PLACE go to {callees}"] or ("clang" in name and not calls)


PAIRED = """
struct ops { int (*sample)(int); int (*scale)(int, int); };
struct probe { const struct ops *ops; int at, now, line[8]; } probes[3], *volatile ready;
static int spi(int n) { return sink + n; }
static int adc(int n) { return sink - n; }
static int linear(int raw, int n) { return raw * n; }
static void tick(void *p) { sink++; }
static const struct ops one = {spi, linear}, other = {adc, linear};
void (*volatile ticks[2])(void *) = {tick, 0};
N int probe_it(struct probe *p, int n) { return p->now = p->ops->scale(p->ops->sample(n), 3); }
static int smooth(struct probe *p, int x) {
    int sum = 0, k = p->at;
    p->line[k] = x;
    for (int i = 0; i < 8; i++) { sum += p->line[k]; k = k ? k - 1 : 7; }
    return sum;
}
N void job(void *of) {
    struct probe *p = of;
    p->now = smooth(p, p->ops->scale(p->ops->sample(p - probes), 3));
}
void init(void) { probes[0].ops = &one; probes[1].ops = &other; ready = &probes[0]; }
int run(int x) { job(ready); return probe_it(ready, x); }
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", ["probe_it", "job"])
def test_members_that_one_instruction_loads_have_their_types(name: str, function: str) -> None:
    """Also of a pointer that stays in one register wherever the variable is in scope."""
    image = Image.load(build_pointers(PAIRED, BUILDS[name]))
    symbol = image.symbol(function)
    assert symbol is not None
    calls = extract(image, [symbol.addr | symbol.thumb]).unresolved
    found = {call.proposal.fact for call in calls if call.proposal}
    assert found == {"calls at PLACE go to adc, spi", "calls at PLACE go to linear"}


HELD_BUILDS = [
    ("C gcc -O2", "-gdwarf-4"),
    ("C gcc -Os Thumb-2", "-gdwarf-5"),
    ("C clang -O2 movw", "-gdwarf-4"),
    ("C clang -O2 movw", "-gdwarf-5"),
]
THREADS = """
int (*volatile hooks[2])(int); static int one(int x) { return x + 1; }
static int thread(int x) { for (;;) sink += x; }
void *leaked = (void *)hooks;
N int hooked(int n) { return hooks[n & 1](2) + 1; }
void init(void) { hooks[0] = choice ? one : thread; }
int run(int x) { return hooked(x); }
"""


def test_threads_are_left_out_with_an_assumption() -> None:
    image = Image.load(build_pointers(THREADS, BUILDS["C gcc -O2"]))
    proposal = proposed(image, "hooked")
    assert proposal.fact == "calls at PLACE go to one"
    assert "leaves out 1 function without a return, as threads" in proposal.note


VECTORS = """
__asm__(".section .text.first, \\"ax\\"\\n .arm\\n .balign 32\\n .global vectors\\nvectors:\\n"
        "b run\\n b run\\n b run\\n b run\\n b run\\n nop\\n b run\\n b .\\n .text\\n");
extern char vectors[]; const void *start = vectors;
int (*volatile hooks[2])(int); static int one(int x) { return x + 1; }
void *leaked = (void *)hooks;
N int hooked(int n) { return hooks[n & 1](2) + 1; }
void init(void) { hooks[0] = one; }
int run(int x) { return hooked(x); }
"""


@pytest.mark.parametrize("debug", ["-g", "-g0"])
def test_exception_vectors_are_no_callbacks(debug: str) -> None:
    """Otherwise a call might reach the reset handler, and so all code of the program."""
    image = Image.load(build_pointers(VECTORS, (*BUILDS["C gcc -O2"], debug)))
    proposal = proposed(image, "hooked")
    assert "vectors" not in proposal.fact
    assert "one" in proposal.fact
    assert "leaves out the exception vectors" in proposal.note


HANDLERS = (
    VECTORS.replace("b run\\n b run\\n b run", "ldr pc, 1f\\n b run\\n b run", 1).replace(
        "b .\\n .text", "b .\\n1: .word tick\\n .text"
    )
    + "void tick(void) { choice++; }\n"
)


def test_handlers_of_exceptions_are_left_out_with_an_assumption() -> None:
    """A program that copies its vectors to RAM may call one through the copy."""
    image = Image.load(build_pointers(HANDLERS, BUILDS["C gcc -O2"]))
    proposal = proposed(image, "hooked")
    assert "tick" not in proposal.fact
    assert "leaves out 1 function of which only exception vectors" in proposal.note


VENEERS = """
int (*volatile hooks[2])(int); static int one(int x) { return x + 1; }
void *leaked = (void *)hooks;
N int far(int n) { return sink += n; }
__asm__(".text\\n .arm\\n .balign 4\\n .global near\\n .type near, %function\\nnear: b far\\n"
        ".size near, . - near\\n .thumb\\n");
int near(int);
N int hooked(int n) { return hooks[n & 1](2) + 1; }
void init(void) { hooks[0] = one; }
int run(int x) { return near(x) + hooked(x); }
"""


def test_words_of_veneers_take_no_addresses() -> None:
    """Of an interworking linker; the functions that assembly code calls were candidates."""
    image = Image.load(build_pointers(VENEERS, (*BUILDS["C gcc -Os Thumb-2"], "-g0")))
    assert image.symbol("__far_from_arm") is not None
    proposal = proposed(image, "hooked")
    assert proposal.fact == "calls at PLACE go to one"
    assert "or veneers load the address" in proposal.note


HELD = """
typedef struct timer timer; typedef struct thread thread;
struct timer { unsigned left; void (*expired)(unsigned long); unsigned long word; timer *next; };
struct thread { int state; int (*wake)(thread *); thread *next; };
timer *timers[8], **now = timers; thread *ready;
static int resume(thread *t) { return t->state = 1; }
static int cancel(thread *t) { return t->state = 2; }
static void blink(unsigned long n) { sink += n; }
static void beat(unsigned long n) { sink -= n; }
static int other(int x) { return x + sink; }
N int by_pointer(void *what) { thread *t = what; if (t->wake) t->wake(t); return t->state; }
N int by_word(unsigned long word) { thread *t = (thread *)word; t->wake(t); return t->state; }
N int by_list(void) {
    timer *at = *now;
    *now = 0;
    while (at) {
        timer *next = at->next;
        void (*f)(unsigned long) = at->left > 9 ? 0 : at->expired;
        if (f) f(at->word);
        at = next;
    }
    return 1;
}
void init(void) {
    ready->wake = choice ? resume : cancel;
    timers[choice & 7]->expired = choice & 8 ? blink : beat;
}
int run(int x) {
    return by_pointer(ready) + by_word((unsigned long)ready) + by_list() + (choice ? other(x) : 0);
}
int (*kept)(int) = other;
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize(("name", "dwarf"), HELD_BUILDS)
def test_a_variable_in_a_register_has_the_type(name: str, dwarf: str) -> None:
    """The pointer is cast from void or from a number, or leaves a list of unknown origin."""
    image = Image.load(build_pointers(HELD, (*BUILDS[name], dwarf)))
    expected = {
        "by_pointer": "cancel, resume",
        "by_word": "cancel, resume",
        "by_list": "beat, blink",
    }
    if "clang" in name:  # it gives the number up where the pointer begins
        del expected["by_word"]
    for function, targets in expected.items():
        symbol = image.symbol(function)
        assert symbol is not None
        calls = extract(image, [symbol.addr | symbol.thumb]).unresolved
        facts = {call.proposal and call.proposal.fact for call in calls}
        assert facts == {f"calls at PLACE go to {targets}"}, function


FRAMED = """
typedef struct timer timer;
struct timer { timer *next; int left; void (*expired)(timer *); timer *argument; };
timer pool[4], *active; int (*handlers[64])(unsigned, int); void *leaked[] = {handlers, &active};
static void blink(timer *t) { sink += t->left; }
static void cease(timer *t) { active = 0; }
static int first(unsigned n, int x) { return n + x; }
static int second(unsigned n, int x) { return n - x; }
static int other(int x) { return x + sink; }
N int by_list(void) {
    for (timer **at = &active; *at;) {
        timer *t = *at;
        if (--t->left > 0) { at = &t->next; continue; }
        t->expired(t->argument);
        *at = t->next;
    }
    return 1;
}
N int by_index(unsigned line) { return handlers[line & 63](line, 1) + 1; }
N int by_local(int x) { int (*f)(unsigned, int) = handlers[choice & 63]; return f(2, x) + 1; }
N int by_argument(int x, int y, int z, int u, void (*f)(timer *)) { f(pool + (x & 3)); return y; }
void init(void) {
    for (int i = 0; i < 64; i++) handlers[i] = i & 1 ? first : second;
    pool[choice & 3].expired = choice & 8 ? blink : cease; active = pool;
}
int run(int x) {
    return by_list() + by_index(x) + by_local(x) + by_argument(x, 0, 0, 0, blink) +
        (choice ? other(x) : 0);
}
int (*kept)(int) = other;
"""
SCALED = """
struct operations { int (*start)(int); int (*pass)(int, char *); void (*end)(void); };
struct bus { const struct operations *op; unsigned at, errors; } busses[3];
void (*lines[64])(unsigned); void *leaked[] = {busses, lines};
static int start(int x) { return x + sink; }
static int pass(int x, char *to) { return x - *to; }
static void end(void) { sink++; }
static void line(unsigned n) { sink = n; }
static const struct operations here = {start, pass, end};
N int by_product(unsigned n) { return busses[n & 1].op->start(1) + 1; }
N int by_mask(void) { lines[*(volatile unsigned *)0x68000040 & 63](1); return 1; }
void init(void) {
    for (int i = 0; i < 64; i++) lines[i] = line;
    busses[0].op = busses[1].op = busses[2].op = &here;
}
int run(int x) { return by_product(x) + by_mask(); }
"""


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("name", ["C gcc -O0", "C gcc -O2", "C gcc -Os Thumb-2"])
@pytest.mark.parametrize("function", ["by_product", "by_mask"])
@pytest.mark.parametrize("code", ["0x10000", "0x400"])
def test_a_factor_or_a_mask_has_no_type(name: str, function: str, code: str) -> None:
    """It is a constant from which an index is computed, and no address of a variable."""
    image = Image.load(build_pointers(SCALED, (*BUILDS[name], f"-Wl,-Ttext={code}")))
    proposal = proposed(image, function)
    wanted = "start" if function == "by_product" else "line"
    assert proposal.fact == f"calls at PLACE go to {wanted}"


FRAMED_BUILDS = [
    ("C gcc -O0", "-gdwarf-4"), ("C gcc -Os Thumb-2", "-O0"), ("C clang -O0", "-g"),
    ("C clang -Os Thumb-2", "-O0"),
]  # fmt: skip


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize(("name", "option"), FRAMED_BUILDS)
def test_a_variable_in_the_frame_has_the_type(name: str, option: str) -> None:
    """Without optimisation, each is there: a list of unknown origin, an index, a local pointer.

    Clang folds indices into addresses, so the table may be the neighbour that holds ``other``.
    """
    image = Image.load(build_pointers(FRAMED, (*BUILDS[name], option)))
    expected = {
        "by_list": "blink, cease",
        "by_index": "first, other, second" if "clang" in name else "first, second",
        "by_local": "first, second",
        "by_argument": "blink, cease",
    }
    for function, targets in expected.items():
        proposal = proposed(image, function)
        assert proposal.fact == f"calls at PLACE go to {targets}", function


UNNAMED = """
struct operations { int (*start)(int); void (*end)(void); } here, there;
int (*hook)(unsigned, int); void *leaked[] = {&here, &there, &hook};
static int start(int x) { return x + sink; }
static int other(int x) { return x - sink; }
static void end(void) { sink++; }
static int line(unsigned n, int x) { return sink + n; }
N struct operations *picked(int x) { return x & 1 ? &here : &there; }
N int by_result(int x) { return picked(x)->start(choice + (x ? 2 : 3)) + 1; }
N int by_hook(int x) { return hook(picked(x) == &here, x) + 1; }
N int by_either(int x) {
    return (x ? hook : (int (*)(unsigned, int))picked(x)->start)(picked(x) != 0, x) + 1;
}
void init(void) {
    here.start = choice ? start : other; there.start = other; here.end = there.end = end;
    hook = line;
}
int run(int x) { return by_result(x) + by_hook(x) + by_either(x); }
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", ["C clang -O0", "C clang -Os Thumb-2"])
def test_a_place_without_a_name_has_the_type_of_the_stored_word(name: str) -> None:
    """Without optimisation, Clang spills the target there while it computes arguments."""
    image = Image.load(build_pointers(UNNAMED, (*BUILDS[name], "-g", "-O0")))
    assert proposed(image, "by_result").fact == "calls at PLACE go to other, start"
    assert proposed(image, "by_hook").fact == "calls at PLACE go to line"
    either = proposed(image, "by_either").fact
    assert {"line", "other", "start"} <= set(re.findall(r"\w+", either)), "a cast is no type"


def test_signatures() -> None:
    image = Image.load(build(
        "struct s { int a; }; void f(char c, struct s *p, void *q) {}\n"
        "int g() { return 1; } int h(const char *form, ...) { return 2; }\n"
        "int main(void) { f(1, 0, 0); }",
        "-w", "-fno-inline",
    ))  # fmt: skip

    def of(name: str) -> Signature:
        symbol = image.symbol(name)
        assert symbol is not None
        found = image.types.signature(symbol.addr)
        assert found is not None
        return found

    assert str(of("f")) == "void (int8, struct s *, void *)"
    assert of("g") == Signature("int32", None)
    assert of("h") == Signature("int32", ("int8 *",), more=True)
    assert of("g").fits(of("h"))
    assert of("h").fits(Signature("int32", ("int8 *", "int32")))
    assert not of("f").fits(of("g"))
    assert not of("f").fits(Signature("void", ("int8", "struct t *", "void *")))
    assert of("f").fits(Signature("void", ("int8", "void *", "struct t *")))


OTHER_NAMES = """
typedef struct { int x, y; } pair, *pointer, twin; typedef struct { int u; } single;
struct { int (*of_pair)(pointer); int (*of_twin)(twin *); int (*old)(int); } *volatile table, all;
static int named(pair *p) { return p->x; }
static int pointed(pointer p) { return p->y; }
static int second(twin *p) { return p->x + p->y; }
static int stranger(single *p) { return p->u; }
static int narrow(c) char c; { return c + 1; }
static int wide(int c) { return c + 2; }
int assembled(int); int (*leaked)(single *);
N int first_name(pair *p) { return table->of_pair(p) + 1; }
N int other_name(pair *p) { return table->of_twin(p) + 1; }
N int promoted(int c) { return table->old(c) + 1; }
void init(void) {
    table = &all; leaked = stranger;
    all.of_pair = choice == 1 ? named : choice ? pointed : second;
    all.of_twin = choice == 1 ? second : choice ? pointed : named;
    all.old = choice == 1 ? narrow : choice ? wide : assembled;
}
int run(int x) { pair p = {x, x}; return first_name(&p) + other_name(&p) + promoted(x); }
"""
ASSEMBLED = """.syntax unified
.text
.global assembled
.type assembled, %function
assembled: add r0, r0, #3
bx lr
.size assembled, . - assembled
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("name", NAMES)
def test_code_without_casts_calls_a_candidate(name: str) -> None:
    """Two typedefs of one structure, a parameter that is promoted, and a function of an assembler.

    GNU as describes its functions as functions without parameters.
    """
    image = Image.load(build_pointers(OTHER_NAMES, (*BUILDS[name], "-std=gnu11"), ASSEMBLED))
    pairs = {"named", "pointed", "second"}
    expected = {"first_name": pairs, "other_name": pairs, "promoted": {"narrow", "wide"}}
    for function, targets in expected.items():
        proposal = proposed(image, function)
        assert "by the debug information" in proposal.note
        found = set(proposal.fact.removeprefix("calls at PLACE go to ").split(", "))
        assert targets <= found, function
        assert "stranger" not in found
        assert "assembled" in found


FOLDED = """
struct a { int x, y; }; struct b { int u, v; };
struct { int (*of_a)(struct a *); int (*of_b)(struct b *); } *volatile table, all;
static int sum_a(struct a *p) { sink++; return p->x * 7 + p->y * 3 + sink; }
static int sum_b(struct b *p) { sink++; return p->u * 7 + p->v * 3 + sink; }
static int other_a(struct a *p) { return p->x * 9; }
static int other_b(struct b *p) { return p->u * 8; }
N int use_a(struct a *p) { return table->of_a(p) + 1; }
N int use_b(struct b *p) { return table->of_b(p) + 1; }
void init(void) {
    table = &all; all.of_a = choice ? sum_a : other_a; all.of_b = choice ? sum_b : other_b;
}
int run(int x) { struct a a = {x, x}; struct b b = {x, x}; return use_a(&a) + use_b(&b); }
"""


@pytest.mark.slow("compiles and extracts a program")
@needs("clang", "ld.lld")
def test_functions_that_a_linker_folds_have_several_types() -> None:
    options = ("-ffunction-sections", "-faddrsig")
    objects = build_pointers(FOLDED, (*BUILDS["C clang -O2 movw"], *options)).with_name("prog.o")
    folded = objects.with_name("folded.elf")
    subprocess.run(["ld.lld", "--icf=all", "-e", "_start", objects, "-o", folded], check=True)
    image = Image.load(folded)
    first, second = (image.symbol(name) for name in ("sum_a", "sum_b"))
    assert first is not None
    assert second is not None
    assert first.addr == second.addr
    for function, other in (("use_a", "other_a"), ("use_b", "other_b")):
        fact = proposed(image, function).fact
        assert other in fact
        assert "sum_a" in fact or "sum_b" in fact


@pytest.mark.slow("compiles two programs")
def test_structures_of_typedefs_compare_by_their_members() -> None:
    """In C++ such a structure has the name of the typedef, in C it has none."""
    text = """typedef struct { int x, y; } pair, *pointer; typedef struct { int u; } single;
    C_LINKAGE pair *first(pointer p) { return p; } C_LINKAGE int second(single *s) { return s->u; }
    C_LINKAGE void init(void) {} C_LINKAGE int run(int x) { return first(0) != 0; }"""
    found = {}
    for name in ("C gcc -O2", "C++ gcc -O2"):
        image = Image.load(build_pointers(text, BUILDS[name]))
        found[name] = [image.types.signature(address(image, f)) for f in ("first", "second")]
    (first, second), (same, other) = found.values()
    assert first is not None
    assert second is not None
    assert same is not None
    assert first.fits(same)
    assert other is not None
    assert second.fits(other)
    assert not first.fits(other)
    assert str(first) == "struct pair * (struct {x, y} *)"


def test_structures_of_another_section_may_be_any() -> None:
    """GCC refers to a structure in a type unit by a number (DWARF 5, 7.5.1.3)."""
    text = "struct s { int a, b; }; int f(struct s *p) { return p->a; } int main(void) { %s }"
    call = "struct s s = {1}; return f(&s);"
    image = Image.load(build(text % call, "-fno-inline", "-fdebug-types-section"))
    found = image.types.signature(address(image, "f"))
    assert found is not None
    assert found.fits(Signature("int32", ("struct s *",)))
    assert not found.fits(Signature("int32", ("struct s *", "int32")))
