/* Cells that live and die, on a torus, for some generations. */
volatile unsigned char input[12];
static unsigned char cells[2][12][12];

static int neighbours(unsigned char (*c)[12], int y, int x)
{
	int n = 0;
	for (int dy = -1; dy <= 1; dy++)
		for (int dx = -1; dx <= 1; dx++)
			if (dx || dy)
				n += c[(y + dy + 12) % 12][(x + dx + 12) % 12];
	return n;
}

int main(void)
{
	int now = 0, alive = 0;
	for (int y = 0; y < 12; y++)
		for (int x = 0; x < 12; x++)
			cells[0][y][x] = input[y] >> (x & 7) & 1;
	for (int g = 0; g < 4; g++, now ^= 1)
		for (int y = 0; y < 12; y++)
			for (int x = 0; x < 12; x++) {
				int n = neighbours(cells[now], y, x);
				cells[!now][y][x] = n == 3 || (n == 2 && cells[now][y][x]);
			}
	for (int y = 0; y < 12; y++)
		for (int x = 0; x < 12; x++)
			alive += cells[now][y][x];
	return alive;
}
