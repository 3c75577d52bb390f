/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's sections: linked in the kernel window, loaded at KERNEL_PHYSICAL.
 * The vectors are linked at the page where they run and loaded after the text.
 * Boot code, the idle loop and everything else are sections of their own.
 */
#include <board.h>

ENTRY(start_physical)

PHDRS
{
    text PT_LOAD FLAGS(5);
    vectors PT_LOAD FLAGS(5);
}

SECTIONS
{
    . = WINDOW_BASE + KERNEL_PHYSICAL - RAM_BASE;
    __image_start = .;

    .text : AT(KERNEL_PHYSICAL) {
        *(.text .text.*)
    } :text
    .idle : AT(ADDR(.idle) - WINDOW_BASE + RAM_BASE) { *(.idle.text) } :text
    .rodata : AT(ADDR(.rodata) - WINDOW_BASE + RAM_BASE) { *(.rodata .rodata.*) } :text
    .boot : AT(ADDR(.boot) - WINDOW_BASE + RAM_BASE) {
        *(.boot.text)
        *(.boot.rodata)
    } :text

    . = ALIGN(4096);
    .data : { *(.data .data.*) } :NONE
    ASSERT(SIZEOF(.data) == 0, "the kernel has no initialised data: boot clears it all")
    __vectors_load = .;
    . = . + 4096;
    .bss (NOLOAD) : {
        __bss_start = .;
        *(.bss.directory)
        *(.bss .bss.stack)
        . = ALIGN(32); /* in one cache line */
        *(.bss.current)
        . = ALIGN(4096);
        __bss_end = .;
    } :NONE
    __image_end = .;
    ASSERT(__image_end <= WINDOW_BASE + BOOT_HEAP - RAM_BASE, "the kernel ends below the first thread's objects")

#ifdef PIN_L2
    ASSERT(__image_start % 0x10000 == 0 && __image_end - __image_start <= 7 * 0x4000,
           "seven ways of L2 hold the image (src/pin_l2_lock.S), and the eighth is left")
#endif

    __vectors_physical = __vectors_load - WINDOW_BASE + RAM_BASE;
    .vectors VECTOR_PAGE : AT(__vectors_physical) { *(.vectors) } :vectors
    start_physical = _start - WINDOW_BASE + RAM_BASE;

    /DISCARD/ : { *(.comment) *(.ARM.exidx*) }
}
