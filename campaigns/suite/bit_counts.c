/* Bits counted in several ways. */
unsigned input[16];
static unsigned char nibble[16];

static int by_clearing(unsigned x)
{
	int n = 0;
	for (; x; x &= x - 1)
		n++;
	return n;
}

static int by_shifting(unsigned x)
{
	int n = 0;
	while (x) {
		n += x & 1;
		x >>= 1;
	}
	return n;
}

static int by_table(unsigned x)
{
	int n = 0;
	for (int i = 0; i < 32; i += 4)
		n += nibble[(x >> i) & 15];
	return n;
}

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 16; i++)
		nibble[i] = (unsigned char)(nibble[i >> 1] + (i & 1));
	for (int i = 0; i < 16; i++)
		sum += by_clearing(input[i]) + by_shifting(input[i]) + by_table(input[i]);
	return sum;
}
