/* A cosine transform of 8 x 8 blocks in integers, quantised, in a zigzag. */
unsigned char input[128];
static const unsigned char zigzag[64] = {
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};
static int block[64];
static short coded[130];

static void transform(int *p, int step)
{
	int s07 = p[0] + p[7 * step], d07 = p[0] - p[7 * step], s16 = p[step] + p[6 * step], d16 = p[step] - p[6 * step];
	int s25 = p[2 * step] + p[5 * step], d25 = p[2 * step] - p[5 * step];
	int s34 = p[3 * step] + p[4 * step], d34 = p[3 * step] - p[4 * step];
	p[0] = s07 + s34 + s16 + s25;
	p[4 * step] = s07 + s34 - s16 - s25;
	p[2 * step] = ((s07 - s34) * 10703 + (s16 - s25) * 4433) >> 13;
	p[6 * step] = ((s07 - s34) * 4433 - (s16 - s25) * 10703) >> 13;
	p[step] = (d07 * 11363 + d16 * 9633 + d25 * 6436 + d34 * 2260) >> 13;
	p[3 * step] = (d07 * 9633 - d16 * 2260 - d25 * 11363 - d34 * 6436) >> 13;
	p[5 * step] = (d07 * 6436 - d16 * 11363 + d25 * 2260 + d34 * 9633) >> 13;
	p[7 * step] = (d07 * 2260 - d16 * 6436 + d25 * 9633 - d34 * 11363) >> 13;
}

int main(void)
{
	int size = 0;
	for (int b = 0; b < 2; b++) {
		int zeros = 0;
		for (int i = 0; i < 64; i++)
			block[i] = input[b * 64 + i] - 128;
		for (int *p = block; p < block + 64; p += 8)
			transform(p, 1);
		for (int i = 0; i < 8; i++)
			transform(block + i, 8);
		for (int i = 0; i < 64; i++) {
			int value = block[zigzag[i]] / (8 + i);
			if (value == 0) {
				zeros++;
				continue;
			}
			while (zeros > 15) {
				coded[size++] = 240;
				zeros -= 16;
			}
			coded[size++] = (short)(zeros << 12 ^ value);
			zeros = 0;
		}
	}
	int sum = 0;
	while (size-- > 0)
		sum += coded[size];
	return sum;
}
