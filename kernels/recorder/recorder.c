/*
 * A QEMU plugin that records the instructions of a kernel.
 *
 *     qemu-system-arm ... -plugin ./librecorder.so,out=FILE[,OPTION=NUMBER]...
 *
 *     low, high   the kernel's addresses, both inclusive (0xf0000000, 0xffffffff)
 *     vectors     the page of the exception vectors (0xffff0000); always kernel
 *     limit       stop after so many recorded instructions (2^28, a file of 1 GiB
 *                 and its accesses at most): a kernel that hangs must not fill the disk
 *     variants    executions of one path with different accesses that are written
 *                 (all): further ones of at most 65,536 instructions are left out
 *
 * The address of an instruction decides whether it is kernel. One *execution*
 * starts with an instruction in one of the eight exception vectors. It ends when an
 * instruction outside the kernel runs, when a vector runs again (a fault, an
 * interrupt between two user instructions, an interrupted idle loop) or when QEMU
 * ends. Kernel instructions before the first vector, that is boot, are not
 * recorded.
 *
 * All addresses are virtual. An instruction is recorded when it starts, so an
 * instruction whose condition fails is there, and so is one that faults. An
 * access is recorded when it has succeeded. Cache and coprocessor instructions
 * make no accesses.
 *
 * The file, little-endian (quoll/recordings/trace.py reads it):
 *
 *     header      "QUOLLTRC", u32 version = 2, u32 low, u32 high, u32 vectors
 *     chunk       "EXEC", u32 n, u32 m, u32 end,
 *                 n x u32 address of an instruction,
 *                 m x { u32 index, u32 address, u32 bytes | store << 8 }
 *                 `end` is an enum end; the chunks of an execution follow each
 *                 other, all but the last with END_CONTINUED. `index` counts
 *                 the instructions of the whole execution from 0.
 *     repeat      "SAME", u32 number: an execution equal to the one with this
 *                 number, counted from 0 over chunks and repeats
 *     trailer     "DONE", u32 status (0 complete, 1 limit reached),
 *                 u64 executions, u64 instructions, u64 accesses
 *
 * A file without its trailer was cut off.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin_api.h"

enum end { END_CONTINUED, END_OUTSIDE, END_VECTOR, END_STOPPED };

struct access {
    uint32_t index;
    uint32_t address;
    uint32_t info;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is written as it is in memory");
_Static_assert(sizeof(struct access) == 12, "as the file says");

#define VERSION 2
#define VECTORS_BYTES 0x20
#define VECTOR_PAGE_BYTES 0x1000
#define CHUNK_PCS 65536
/* A load-multiple makes 16 accesses; nothing makes more. */
#define MAX_ACCESSES_OF_ONE 16
#define CHUNK_ACCESSES (CHUNK_PCS + MAX_ACCESSES_OF_ONE)

/* Executions to compare new ones with: by hash, the last of each; 256 MiB at most. */
#define SLOTS 16384
#define REMEMBERED_WORDS 4096
/* Paths whose executions are counted: by hash, the last of each. */
#define PATHS 65536

int qemu_plugin_version = 1;

static FILE *out;
static bool write_failed;
static uint64_t low = 0xf0000000, high = 0xffffffff, vectors = 0xffff0000;
static uint64_t limit = UINT64_C(1) << 28;

/* The execution being recorded, and the part of it that is not yet written. */
static bool inside;
static uint32_t first_pc;           /* index of pcs[0] in the execution */
static uint32_t n_pcs, n_accesses;
static uint32_t pcs[CHUNK_PCS];
static struct access accesses[CHUNK_ACCESSES];

static struct remembered {
    uint32_t number, end, n_pcs, n_accesses;
    uint32_t *words;                /* the pcs, then the accesses; NULL: no execution yet */
} slots[SLOTS];

static uint64_t variants = UINT32_MAX;

static struct path {
    uint64_t hash;
    uint32_t written;               /* executions with different accesses */
} paths[PATHS];

static bool limit_reached;
static uint64_t total_executions, total_pcs, total_accesses;

static void put(const void *bytes, size_t size)
{
    if (size != 0 && fwrite(bytes, size, 1, out) != 1)
        write_failed = true;
}

static void put_u32(uint32_t value)
{
    put(&value, sizeof value);
}

static void put_u64(uint64_t value)
{
    put(&value, sizeof value);
}

static void write_chunk(enum end end)
{
    put("EXEC", 4);
    put_u32(n_pcs);
    put_u32(n_accesses);
    put_u32(end);
    put(pcs, n_pcs * sizeof pcs[0]);
    put(accesses, n_accesses * sizeof accesses[0]);
    total_pcs += n_pcs;
    total_accesses += n_accesses;
    first_pc += n_pcs;
    n_pcs = n_accesses = 0;
}

static uint64_t fnv1a(uint64_t hash, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Writes the execution as a repeat of a remembered one; false if it is none. */
static bool write_repeat(const struct remembered *slot, enum end end)
{
    size_t pcs_bytes = n_pcs * sizeof pcs[0], accesses_bytes = n_accesses * sizeof accesses[0];

    if (!slot->words || slot->end != end || slot->n_pcs != n_pcs || slot->n_accesses != n_accesses
        || memcmp(slot->words, pcs, pcs_bytes) != 0
        || memcmp(slot->words + n_pcs, accesses, accesses_bytes) != 0)
        return false;
    put("SAME", 4);
    put_u32(slot->number);
    total_pcs += n_pcs;
    total_accesses += n_accesses;
    n_pcs = n_accesses = 0;
    return true;
}

static void remember(struct remembered *slot, enum end end)
{
    size_t pcs_bytes = n_pcs * sizeof pcs[0], accesses_bytes = n_accesses * sizeof accesses[0];

    free(slot->words);
    slot->words = malloc(pcs_bytes + accesses_bytes);
    if (!slot->words)
        return;
    memcpy(slot->words, pcs, pcs_bytes);
    memcpy(slot->words + n_pcs, accesses, accesses_bytes);
    slot->number = (uint32_t)total_executions;
    slot->end = end;
    slot->n_pcs = n_pcs;
    slot->n_accesses = n_accesses;
}

/* Whether enough executions of the path are written; counts this one if not. */
static bool is_left_out(uint64_t hash, enum end end)
{
    struct path *path;

    hash = (hash ^ end) * UINT64_C(0x100000001b3);
    path = &paths[(hash ^ hash >> 32) % PATHS];
    if (path->hash != hash)
        *path = (struct path){ .hash = hash };
    return path->written == variants || (path->written++, false);
}

/* Writes an execution of which no chunk is written yet; false if it is left out. */
static bool write_execution(enum end end)
{
    const uint32_t *access_words = (const uint32_t *)accesses;
    size_t n_words = n_accesses * (sizeof accesses[0] / sizeof(uint32_t));
    uint64_t of_path = fnv1a(UINT64_C(0xcbf29ce484222325), pcs, n_pcs);
    uint64_t hash = fnv1a(of_path, access_words, n_words);
    struct remembered *slot = &slots[(hash ^ hash >> 32) % SLOTS];
    bool is_small = n_pcs + n_words <= REMEMBERED_WORDS;

    if (is_small && write_repeat(slot, end))
        return true;
    if (is_left_out(of_path, end)) {
        n_pcs = n_accesses = 0;
        return false;
    }
    if (is_small)
        remember(slot, end);
    write_chunk(end);
    return true;
}

static void end_execution(enum end end)
{
    if (!inside)
        return;
    if (first_pc != 0) {
        write_chunk(end);
        total_executions++;
    } else {
        total_executions += write_execution(end);
    }
    inside = false;
}

static bool is_kernel(uint64_t pc)
{
    return (pc >= low && pc <= high) || (pc >= vectors && pc < vectors + VECTOR_PAGE_BYTES);
}

static bool is_vector(uint64_t pc)
{
    return pc >= vectors && pc < vectors + VECTORS_BYTES && pc % 4 == 0;
}

static void record_pc(uint32_t pc)
{
    if (n_pcs == CHUNK_PCS || n_accesses > CHUNK_ACCESSES - MAX_ACCESSES_OF_ONE)
        write_chunk(END_CONTINUED);
    pcs[n_pcs++] = pc;
}

/* True when nothing more may be recorded; ends the execution it meets. */
static bool at_limit(void)
{
    if (total_pcs + n_pcs < limit)
        return false;
    limit_reached = true;
    end_execution(END_STOPPED);
    return true;
}

static void on_vector(unsigned vcpu, void *pc)
{
    end_execution(END_VECTOR);
    if (at_limit())
        return;
    inside = true;
    first_pc = 0;
    record_pc((uintptr_t)pc);
}

static void on_kernel(unsigned vcpu, void *pc)
{
    if (inside && !at_limit())
        record_pc((uintptr_t)pc);
}

static void on_outside(unsigned vcpu, void *pc)
{
    end_execution(END_OUTSIDE);
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *pc)
{
    if (!inside)
        return;
    if (n_accesses == CHUNK_ACCESSES) {
        fprintf(stderr, "recorder: more than %d accesses by the instruction at 0x%08x\n",
                MAX_ACCESSES_OF_ONE, (uint32_t)(uintptr_t)pc);
        abort();
    }
    accesses[n_accesses++] = (struct access){
        .index = first_pc + n_pcs - 1,
        .address = address,
        .info = 1u << qemu_plugin_mem_size_shift(info)
                | (uint32_t)qemu_plugin_mem_is_store(info) << 8,
    };
}

/* Asks for the callbacks of one translated block: all of the kernel's
   instructions, and of others only the first after kernel instructions. */
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    bool after_kernel = true;

    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t pc = qemu_plugin_insn_vaddr(insn);
        void *userdata = (void *)(uintptr_t)pc;

        if (is_kernel(pc)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, is_vector(pc) ? on_vector : on_kernel,
                                                   QEMU_PLUGIN_CB_NO_REGS, userdata);
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, userdata);
            after_kernel = true;
        } else if (after_kernel) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_outside, QEMU_PLUGIN_CB_NO_REGS,
                                                   userdata);
            after_kernel = false;
        }
    }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *userdata)
{
    end_execution(END_STOPPED);
    put("DONE", 4);
    put_u32(limit_reached);
    put_u64(total_executions);
    put_u64(total_pcs);
    put_u64(total_accesses);
    if (fclose(out) != 0 || write_failed)
        fprintf(stderr, "recorder: the trace could not be written completely (disk full?)\n");
}

static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;

    *number = strtoull(text, &end, 0);
    return end != text && *end == '\0' && *number <= max;
}

static int refuse(const char *reason, const char *what)
{
    fprintf(stderr, "recorder: %s%s\n", reason, what);
    return 1;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    const char *path = NULL;

    if (!info->system_emulation || strcmp(info->target_name, "arm") != 0)
        return refuse("records 32-bit ARM systems only, not ", info->target_name);
    if (info->system.smp_vcpus != 1)
        return refuse("records one core only", "");

    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        size_t length = value ? (size_t)(value++ - argv[i]) : 0;
        struct {
            const char *name;
            uint64_t *number, max;
        } numbers[] = {
            {"low", &low, UINT32_MAX},
            {"high", &high, UINT32_MAX},
            {"vectors", &vectors, UINT32_MAX},
            {"limit", &limit, UINT32_MAX},
            {"variants", &variants, UINT32_MAX},
        };
        bool known = false;

        if (length == 3 && strncmp(argv[i], "out", 3) == 0) {
            path = value;
            known = true;
        }
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++)
            if (length == strlen(numbers[j].name) && strncmp(argv[i], numbers[j].name, length) == 0)
                known = parse_number(value, numbers[j].max, numbers[j].number);
        if (!known)
            return refuse("bad option: ", argv[i]);
    }
    if (path == NULL)
        return refuse("give out=FILE", "");
    if (low > high || vectors % VECTOR_PAGE_BYTES != 0)
        return refuse("low must not be above high, and vectors must be a page", "");
    out = fopen(path, "wb");
    if (out == NULL)
        return refuse("cannot write ", path);

    put("QUOLLTRC", 8);
    put_u32(VERSION);
    put_u32(low);
    put_u32(high);
    put_u32(vectors);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
