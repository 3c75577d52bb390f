/* A sparse matrix in rows, times a vector, several times. */
static const unsigned char starts[11] = {0, 2, 5, 6, 9, 11, 14, 15, 18, 20, 22};
static const unsigned char column[22] = {0, 3, 1, 2, 7, 2, 0, 3, 9, 4, 5, 1, 5, 8, 6, 2, 7, 9, 3, 8, 0, 9};
static int value[22], x[10], y[10];

int main(void)
{
	for (int i = 0; i < 22; i++)
		value[i] = i - 9;
	for (int i = 0; i < 10; i++)
		x[i] = i;
	for (int step = 0; step < 6; step++) {
		for (int r = 0; r < 10; r++) {
			int sum = 0;
			for (int k = starts[r]; k < starts[r + 1]; k++)
				sum += value[k] * x[column[k]];
			y[r] = sum;
		}
		for (int r = 0; r < 10; r++)
			x[r] = y[r] & 255;
	}
	return x[4];
}
