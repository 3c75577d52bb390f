/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader: a program of the boot archive runs in spaces of its own; files that are damaged are
 * refused, each by its reason, before anything is made.
 */
#include "loader.h"
#include "tests.h"

#define COPY_WORDS 4096
#define BADGE      7

static word_t copy[COPY_WORDS];

static bool find(struct file *file)
{
    return archive_find(boot_archive, boot_archive_end, "answer.elf", file);
}

/* It runs, keeps its argument, and its fault reaches the handler that the loader names. */
static bool a_program_runs(void)
{
    word_t talk = make(TYPE_ENDPOINT, 0);
    word_t faults = make(TYPE_ENDPOINT, 0);
    struct process process;
    struct message m;
    struct file file;

    SAME(find(&file), true);
    SAME(process_load(&process, &file, 100), LOAD_DONE);
    process_give(&process, OWN_FREE, talk, RIGHT_SEND, 0);
    process_give(&process, OWN_FAULTS, faults, RIGHT_SEND, BADGE);
    process_start(&process, 5);
    SAME(receive(talk).w[0], 115);
    SAME(reply_receive(talk, 0, 41).w[0], 42);
    send(SYS_REPLY, 0, 0);
    m = receive(faults);
    SAME(m.badge, BADGE);
    SAME(message_label(m.info), FAULT_DATA_ABORT);
    return true;
}

static bool two_of_one_file(void)
{
    word_t talk = make(TYPE_ENDPOINT, 0);
    struct process process[2];
    struct file file;

    SAME(find(&file), true);
    for (word_t i = 0; i < 2; i++) {
        SAME(process_load(&process[i], &file, 100), LOAD_DONE);
        process_give(&process[i], OWN_FREE, talk, RIGHT_SEND, i + 1);
    }
    process_start(&process[0], 0);
    SAME(receive(talk).badge, 1);
    process_start(&process[1], 10);
    for (word_t i = 0; i < 2; i++) /* the first waits for its answer, the second for its turn */
        SAME(tcb_suspend(process[i].thread), ERROR_NONE);
    return true;
}

/* The file with one word in its place, which begins at this byte. */
static struct file changed(const struct file *file, word_t at, word_t value)
{
    unsigned char *bytes = (unsigned char *)copy;

    for (word_t i = 0; i < file->bytes; i++)
        bytes[i] = file->start[i];
    for (word_t i = 0; i < 4; i++)
        bytes[at + i] = (unsigned char)(value >> (8 * i));
    return (struct file){ bytes, file->bytes };
}

/* Word 28 of the header: where the program headers are; their first is at 52, as the linker has it. */
static bool damaged_files(void)
{
    static const struct {
        const char *what;
        word_t at, value, result;
    } damages[] = {
        { "magic", 0, 0x464c457e, LOAD_NO_ELF },
        { "64 bits", 4, 0x00010102, LOAD_NO_ELF },
        { "big-endian", 4, 0x00010201, LOAD_NO_ELF },
        { "a library", 16, 0x00280003, LOAD_NO_ELF },
        { "of another processor", 16, 0x003e0002, LOAD_NO_ELF },
        { "headers beyond the end", 28, 0xfffffff0, LOAD_DAMAGED },
        { "size of headers", 40, 0x00210034, LOAD_DAMAGED },
        { "too many headers", 44, 0x0028ffff, LOAD_DAMAGED },
        { "no headers", 44, 0x00280000, LOAD_DAMAGED },
        { "segment beyond the end", 52 + 4, 0xfffff000, LOAD_DAMAGED },
        { "segment longer than the file", 52 + 16, 0x00100000, LOAD_DAMAGED },
        { "more in the file than in memory", 52 + 20, 16, LOAD_DAMAGED },
        { "segment inside of a page", 52 + 8, IMAGE_BASE + 4, LOAD_MISPLACED },
        { "segment at 0", 52 + 8, 0, LOAD_MISPLACED },
        { "segment of the kernel", 52 + 8, 0xf0010000, LOAD_MISPLACED },
        { "segment over the message buffer", 52 + 8, ROOT_BUFFER, LOAD_MISPLACED },
        { "segment up to the end of memory", 52 + 20, 0u - IMAGE_BASE, LOAD_MISPLACED },
    };
    struct process process;
    struct file file, bad;

    SAME(find(&file), true);
    SAME(file.bytes <= sizeof(copy), true);
    for (word_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        bad = changed(&file, damages[i].at, damages[i].value);
        if (!same(damages[i].what, process_load(&process, &bad, 100), damages[i].result))
            return false;
    }
    bad = changed(&file, 52 + 32 + 8, IMAGE_BASE); /* the second segment, onto the first */
    SAME(process_load(&process, &bad, 100), LOAD_MISPLACED);
    return true;
}

/* Cut anywhere, nothing is read beyond the end: at most the whole file is a program. */
static bool shorter_files(void)
{
    struct process process;
    struct file file;
    word_t accepted = 0;

    SAME(find(&file), true);
    for (word_t bytes = 0; bytes < file.bytes && accepted == 0; bytes += 97) {
        struct file cut = { file.start, bytes };

        if (process_load(&process, &cut, 100) == LOAD_DONE)
            accepted = bytes; /* behind the segments are only headers of sections */
    }
    SAME(accepted == 0 || accepted > 4096, true);
    return true;
}

static bool archives(void)
{
    word_t bytes = (word_t)(boot_archive_end - boot_archive);
    struct file file, again;

    SAME(find(&file), true);
    SAME(archive_find(boot_archive, boot_archive_end, "answer", &again), false);
    SAME(archive_find(boot_archive, boot_archive_end, "answer.elf2", &again), false);
    SAME(archive_find(boot_archive, boot_archive_end, "second", &again), true);
    SAME(again.bytes, 0);
    for (word_t cut = 0; cut < bytes; cut += 61) {
        bool found = archive_find(boot_archive, boot_archive + cut, "answer.elf", &again);

        SAME(found, cut >= (word_t)(file.start - boot_archive) + file.bytes);
    }
    return true;
}

static const struct test loading_tests[] = {
    { a_program_runs, "a program of the archive runs in spaces of its own" },
    { two_of_one_file, "one file is loaded twice" },
    { damaged_files, "damaged files are refused, each by its reason" },
    { shorter_files, "files that are cut are refused" },
    { archives, "archives that are cut have no file from there on" },
    { NULL, NULL },
};

const struct test *const suite[] = { loading_tests, NULL };
