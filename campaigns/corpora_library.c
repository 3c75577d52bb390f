/*
 * Runs much of a C library: formats and parses numbers, sorts and searches, copies memory at all
 * alignments, allocates, uses tables of character classes, time and mathematics.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char text[512];
static unsigned sum;
static volatile double point = 12.75;
static volatile long long large = 0x123456789abcdefll;

static void note(const char *bytes, size_t count)
{
	while (count--)
		sum = sum * 31 + (unsigned char)*bytes++;
}

static void format(const char *how, ...)
{
	va_list list;

	va_start(list, how);
	note(text, vsnprintf(text, sizeof text, how, list) % sizeof text);
	va_end(list);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void formats(void)
{
	format("%d %i %u %x %X %o %c %s %p %%", -5, 7, 9u, 255u, 255u, 8u, 'x', "word", text);
	format("%+d % d %05d %-5d| %.3d %#x %#o %hd %hhd %ld", 1, 2, 3, 4, 5, 6u, 7u, 8, 9, 10l);
	format("%lld %llx %llu %*d %.*s", large, large, large, 6, 42, 3, "abcdef");
	format("%f %e %g %G %a %.0f %10.3f %-10.1e|", point, point, point, 1e300, point, 2.5, 3.14159,
	       -1e-5);
	format("%f %e %g %5s %zu %td", 0.0, HUGE_VAL, -NAN, "ab", sizeof text, (ptrdiff_t)3);
}

static void numbers(void)
{
	int a, b;
	float f;
	char word[8];
	char *end;

	sum += strtol(" -0x1fz", &end, 0) + *end + strtoul("777", NULL, 8) + atoi("42");
	sum += strtoll("-99999999999", NULL, 10) % 1000 + (unsigned)(strtod("1.5e3x", &end) * 2);
	sum += (unsigned)strtod("0x1.8p1", NULL) + (unsigned)(atof("1e-400") + strtof("3.25", NULL));
	sum += sscanf("12 0x3f 2.5 word [abc", "%d %x %f %7s [%7[a-c]", &a, (unsigned *)&b, &f, word,
		      text);
	sum += a + b + (int)f + div(17, 5).rem + (int)lldiv(large, 1000).rem + abs(-3);
}

static void memory(void)
{
	char from[80], to[80];

	for (int i = 0; i < 80; i++)
		from[i] = 'a' + i % 26;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++)
			for (int n = 0; n < 64; n += 7) {
				memcpy(to + i, from + j, n);
				memmove(to + j, to + i, n);
				sum += memcmp(to + i, from + j, n) != 0;
				memset(to + i, n, n);
				note(to, sizeof to);
			}
	for (int i = 0; i < 8; i++) {
		strcpy(text, "some words, to be; split");
		sum += strlen(text + i) + strcmp(text + i, "me words") + strncmp(text, "some", i);
		sum += (size_t)(strchr(text + i, 'o') - text) + (strstr(text, "be") != NULL);
		sum += strspn(text + i, "a-z me") + strcspn(text, ";") + (strrchr(text, 'o') != NULL);
		sum += (size_t)((char *)memchr(text, 'p', 24) - text);
	}
	for (char *word = strtok(text, " ,;"); word; word = strtok(NULL, " ,;"))
		note(word, strlen(word));
}

static void structures(void)
{
	int values[40], key = 77;
	void *kept[16];
	time_t when = 1700000000;
	struct tm *date = gmtime(&when);

	for (int i = 0; i < 40; i++)
		values[i] = (i * 7919 + 13) % 101;
	qsort(values, 40, sizeof values[0], compare);
	note((char *)values, sizeof values);
	sum += bsearch(&key, values, 40, sizeof values[0], compare) != NULL;
	for (int i = 0; i < 16; i++)
		kept[i] = malloc(8 + i * 40);
	for (int i = 0; i < 16; i += 2)
		free(kept[i]);
	for (int i = 0; i < 16; i += 2)
		kept[i] = calloc(3, 30 + i);
	kept[1] = realloc(kept[1], 900);
	sum += date->tm_year + date->tm_yday + (int)(mktime(date) & 7);
	note(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a %B %j", date));
	for (int c = 0; c < 128; c++)
		sum += (isalpha(c) != 0) + (isspace(c) != 0) + toupper(c) + (ispunct(c) != 0);
	srand(5);
	sum += rand() % 100;
}

static void mathematics(void)
{
	for (double x = -3; x < 4; x += 0.7) {
		double y = sin(x) + cos(x) + tan(x) + atan2(x, 2) + exp(x) + sinh(x) + tanh(x);

		y += log(x + 4) + pow(x + 4, 1.3) + sqrt(x + 4) + floor(x) + fmod(x, 0.4) + cbrt(x);
		y += erf(x) + lgamma(x + 5) + asin(x / 5) + acos(x / 5) + log10(x + 4) + hypot(x, 1);
		sum += (int)(y * 1000) + (int)lround(x) + (int)(sinf(x) * 100 + powf(x + 4, 2));
	}
}

#ifdef __PICOLIBC__
extern char __tdata_start[], __data_start[];
void _set_tls(void *);
_Alignas(8) char words[256]; /* of the only thread, behind a head of 8 bytes */

/* From ARMv7 on a register points to them, which user mode does not write: `begin` asks Linux. */
__asm__(".text\n"
	".balign 4\n"
	".arm\n"
	".global begin\n"
	"begin:	ldr r0, =words\n"
	"	ldr r7, =0xf0005\n"
	"	svc #0\n"
	"	b _start\n"
	"	.ltorg\n");

static void prepare(void)
{
	memcpy(words + 8, __tdata_start, __data_start - __tdata_start);
#if __ARM_ARCH < 7
	_set_tls(words);
#endif
}
#else
static void prepare(void) {}
#endif

int main(void)
{
	prepare();
	formats();
	numbers();
	memory();
	structures();
	mathematics();
	printf("%u\n", sum);
	return 0;
}
