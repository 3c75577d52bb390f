/* Quotients and remainders by variables, digits in bases, Euclid's algorithm. */
unsigned input[8];

static unsigned divisor(unsigned a, unsigned b)
{
	while (b) {
		unsigned t = a % b;
		a = b;
		b = t;
	}
	return a;
}

static unsigned digits(unsigned n, unsigned base)
{
	unsigned sum = 0;
	do {
		sum += n % base;
		n /= base;
	} while (n);
	return sum;
}

int main(void)
{
	unsigned sum = 0;
	for (int i = 0; i < 8; i++)
		sum += digits(input[i], 10);
	for (unsigned i = 1; i < 20; i++)
		sum += divisor(i * 36, 270) + 1000 / i;
	return (int)sum;
}
