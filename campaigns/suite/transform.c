/* Butterflies in place: bit reversal, and stages whose span doubles. */
#define N 32
static int re[N], im[N];
static const short cosine[N / 2] = {256, 251, 237, 213, 181, 142, 98, 50, 0, -50, -98, -142, -181, -213, -237, -251};

static void reverse(void)
{
	for (int i = 0, j = 0; i < N - 1; i++) {
		if (i < j) {
			int t = re[i];
			re[i] = re[j];
			re[j] = t;
		}
		int bit = N / 2;
		while (bit && (j & bit)) {
			j &= ~bit;
			bit >>= 1;
		}
		j |= bit;
	}
}

int main(void)
{
	for (int i = 0; i < N; i++)
		re[i] = (i * 7) % 19;
	reverse();
	for (int half = 1; half < N; half <<= 1)
		for (int start = 0; start < N; start += 2 * half)
			for (int k = 0; k < half; k++) {
				int w = cosine[k * (N / 2) / half], a = start + k, b = a + half;
				int x = (re[b] * w) >> 8, y = (im[b] * w) >> 8;
				re[b] = re[a] - x;
				im[b] = im[a] - y;
				re[a] += x;
				im[a] += y;
			}
	return re[3];
}
