/* A transform of blocks of eight by eight, by rows and columns. */
static int block[8][8], out[8][8];
static const int basis[8] = {64, 62, 59, 53, 45, 35, 24, 12};

static void line(const int *from, int step, int *to, int stride)
{
	for (int u = 0; u < 8; u++) {
		int sum = 0;
		for (int x = 0; x < 8; x++)
			sum += from[x * step] * (((2 * x + 1) * u) & 8 ? -basis[(x * u) & 7] : basis[(x * u) & 7]);
		to[u * stride] = sum >> 7;
	}
}

int main(void)
{
	for (int i = 0; i < 64; i++)
		block[i >> 3][i & 7] = (i * 5) & 31;
	for (int r = 0; r < 8; r++)
		line(block[r], 1, out[r], 1);
	for (int c = 0; c < 8; c++)
		line(&out[0][c], 8, &block[0][c], 8);
	return block[2][3];
}
