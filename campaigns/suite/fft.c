/* A transform of 32 complex numbers in fixed point, in place, with a table of sines. */
unsigned char input[64];
static const short sines[32] = {
	0, 3196, 6270, 9102, 11585, 13623, 15137, 16069, 16384, 16069, 15137, 13623, 11585, 9102, 6270, 3196,
	0, -3196, -6270, -9102, -11585, -13623, -15137, -16069, -16384, -16069, -15137, -13623, -11585, -9102, -6270, -3196,
};
static int re[32], im[32];

static void reorder(void)
{
	unsigned j = 0;
	for (unsigned i = 0; i < 31; i++) {
		if (i < j) {
			int t = re[i];
			re[i] = re[j];
			re[j] = t;
			t = im[i];
			im[i] = im[j];
			im[j] = t;
		}
		unsigned m = 16;
		while (m >= 1 && j & m) {
			j ^= m;
			m >>= 1;
		}
		j |= m;
	}
}

int main(void)
{
	volatile unsigned char *from = input;
	for (int i = 0; i < 32; i++) {
		re[i] = from[2 * i];
		im[i] = from[2 * i + 1];
	}
	reorder();
	for (int size = 2; size <= 32; size <<= 1) {
		int half = size >> 1, step = 32 / size;
		for (int at = 0; at < 32; at += size)
			for (int k = 0; k < half; k++) {
				int c = sines[k * step + 8 & 31], s = -sines[k * step];
				int *a = &re[at + k], *b = &im[at + k];
				int x = (a[half] * c - b[half] * s) >> 14, y = (a[half] * s + b[half] * c) >> 14;
				a[half] = *a - x;
				b[half] = *b - y;
				*a += x;
				*b += y;
			}
	}
	int sum = 0;
	for (int i = 0; i < 32; i++)
		sum ^= re[i] + im[i];
	return sum;
}
