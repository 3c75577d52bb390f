/* Functions that compilers call by themselves, byte by byte, and the start of each program. */
typedef __SIZE_TYPE__ size_t;

__asm__(".syntax unified\n"
	".text\n"
	".globl start\n"
	".type start, %function\n"
#ifdef __thumb__
	".thumb_func\n"
#endif
	"start: ldr r3, =0xf0200000\n"
	" mov sp, r3\n"
	" push {r4, lr}\n"
	" bl main\n"
	" pop {r4, pc}\n"
	".size start, . - start\n"
	".ltorg\n");

void *memcpy(void *to, const void *from, size_t n)
{
	char *d = to;
	for (const char *s = from; n; n--)
		*d++ = *s++;
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	for (char *d = to; n; n--)
		*d++ = (char)byte;
	return to;
}

void __aeabi_memcpy(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy4(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy8(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memset(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memclr(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr4(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr8(void *to, size_t n) { memset(to, 0, n); }
