/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A first program: linked at IMAGE_BASE, loaded at USER_IMAGE.  It begins with
 * the four words that the kernel's boot code reads.
 */
#include <board.h>
#include <bilby/api.h>

ENTRY(_start)

PHDRS
{
    text PT_LOAD FLAGS(5);
    data PT_LOAD FLAGS(6);
    dirt PT_LOAD FLAGS(4);
}

SECTIONS
{
    . = IMAGE_BASE;
    .text : AT(USER_IMAGE) {
        *(.header)
        *(.text .text.*)
        *(.rodata .rodata.*)
        . = ALIGN(4096);
    } :text
    __text_end = .;
    .data : AT(ADDR(.data) - IMAGE_BASE + USER_IMAGE) {
        *(.data .data.*)
    } :data
    .bss : AT(ADDR(.bss) - IMAGE_BASE + USER_IMAGE) {
        *(.bss .bss.*)
        . = ALIGN(4096);
    } :data
    __image_end = .;
    /* Not part of the program: lies in free memory before the kernel starts. */
    .dirt DIRT : AT(DIRT) { *(.dirt) } :dirt
    __text_bytes = __text_end - IMAGE_BASE;
    __image_bytes = __image_end - IMAGE_BASE;

    /DISCARD/ : { *(.comment) *(.ARM.exidx*) }
}
