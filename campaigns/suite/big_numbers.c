/* Numbers of many words: sum, product, remainder by shifts, digits in decimal. */
unsigned input[8];
static unsigned product[8], square[16];
static char digits[80];

static void multiply(unsigned *out, const unsigned *a, const unsigned *b, int n)
{
	for (int i = 0; i < 2 * n; i++)
		out[i] = 0;
	for (int i = 0; i < n; i++) {
		unsigned carry = 0;
		for (int j = 0; j < n; j++) {
			unsigned long long t = (unsigned long long)a[i] * b[j] + out[i + j] + carry;
			out[i + j] = (unsigned)t;
			carry = (unsigned)(t >> 32);
		}
		out[i + n] = carry;
	}
}

static unsigned divide(unsigned *a, int n, unsigned by)
{
	unsigned rest = 0;
	for (int i = n - 1; i >= 0; i--) {
		for (int bit = 31; bit >= 0; bit--) {
			rest = rest << 1 | (a[i] >> bit & 1);
			a[i] &= ~(1u << bit);
			if (rest >= by) {
				rest -= by;
				a[i] |= 1u << bit;
			}
		}
	}
	return rest;
}

static int zero(const unsigned *a, int n)
{
	while (n > 0 && a[n - 1] == 0)
		n--;
	return n == 0;
}

int main(void)
{
	int size = 0;
	multiply(product, input, input + 4, 4);
	multiply(square, product, product, 8);
	while (size < 12 && !zero(product, 8))
		digits[size++] = (char)('0' + divide(product, 8, 10));
	int sum = 0;
	for (int i = 0; i < size; i++)
		sum = sum * 7 + digits[i];
	return sum + (int)square[15];
}
