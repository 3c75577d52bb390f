/*
 * What a program needs to run in user-mode QEMU and to be analysed to its end: a start, a heap, and
 * system calls that do nothing. The only SVC is the one that ends the program, at `stop`.
 *
 * `_start` is at the start of a page, where the recorder expects an exception vector.
 */
#include <sys/stat.h>

__asm__(".section .init, \"ax\", %progbits\n"
	".arm\n"
	".global _start\n"
	".type _start, %function\n"
	"_start:\n"
	"	bic sp, sp, #7\n"
	"	bl main\n"
	"	b _exit\n"
	".size _start, . - _start\n"
	".global _exit\n"
	".type _exit, %function\n"
	"_exit:\n"
	"	mov r7, #1\n"
	"stop:	svc #0\n"
	"	b stop\n"
	".size _exit, . - _exit\n"
	".text\n");

static char heap[1 << 16];
static int used;

void *_sbrk(int bytes)
{
	if (bytes > (int)sizeof heap - used)
		return (void *)-1;
	used += bytes;
	return heap + used - bytes;
}

int _write(int file, const char *bytes, int count) { return count; }
int _read(int file, char *bytes, int count) { return 0; }
int _close(int file) { return 0; }
int _lseek(int file, int offset, int whence) { return 0; }
int _isatty(int file) { return 1; }
int _getpid(void) { return 1; }
int _kill(int process, int signal) { return -1; }

int _fstat(int file, struct stat *about)
{
	about->st_mode = S_IFCHR;
	return 0;
}
