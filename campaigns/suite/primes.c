/* Primes by trial division with an early end, and by a sieve of bits. */
volatile int input[1];
static unsigned bits[16];

static int divides(unsigned n, unsigned m) { return n % m == 0; }
static int even(unsigned n) { return divides(n, 2); }

static int prime(unsigned n)
{
	if (even(n))
		return n == 2;
	for (unsigned i = 3; i * i <= n; i += 2)
		if (divides(n, i))
			return 0;
	return n > 1;
}

int main(void)
{
	unsigned x = 513239, y = 21649, count = 0;
	x += (unsigned)input[0] & 7;
	if (prime(x & 0xffff) && prime(y))
		count += 1000;
	for (int i = 0; i < 16; i++)
		bits[i] = ~0u;
	for (unsigned i = 2; i < 512; i++) {
		if (!(bits[i >> 5] >> (i & 31) & 1))
			continue;
		count++;
		for (unsigned k = i * i; k < 512; k += i)
			bits[k >> 5] &= ~(1u << (k & 31));
	}
	return (int)count;
}
