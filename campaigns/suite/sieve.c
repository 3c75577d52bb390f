/* Primes: a sieve whose inner start and step move, and trial division. */
#define N 200
static unsigned char composite[N];

static int prime(unsigned n)
{
	if (n < 2)
		return 0;
	for (unsigned d = 2; d * d <= n; d++)
		if (n % d == 0)
			return 0;
	return 1;
}

int main(void)
{
	int count = 0;
	for (int i = 2; i * i < N; i++)
		if (!composite[i])
			for (int j = i * i; j < N; j += i)
				composite[j] = 1;
	for (int i = 2; i < N; i++)
		count += !composite[i];
	for (unsigned n = 1; n < 40; n++)
		count += prime(n);
	return count;
}
