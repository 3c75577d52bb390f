/* Square roots by Newton's iteration, integers and floats, and by bits. */
unsigned input[6];

static unsigned by_bits(unsigned n)
{
	unsigned root = 0;
	for (unsigned bit = 1u << 30; bit; bit >>= 2) {
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else
			root >>= 1;
	}
	return root;
}

static float by_newton(float x)
{
	float guess = x * 0.5f;
	for (int i = 0; i < 8; i++)
		guess = 0.5f * (guess + x / guess);
	return guess;
}

int main(void)
{
	unsigned sum = 0;
	for (int i = 0; i < 6; i++)
		sum += by_bits(input[i]);
	return (int)sum + (int)by_newton(2.0f);
}
