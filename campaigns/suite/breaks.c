/* Nested loops that are left from inside: a Pythagorean triple, a saddle point. */
static int m[8][8];
unsigned input[4];

static int triple(int perimeter)
{
	for (int a = 1; a < perimeter / 3; a++)
		for (int b = a; b < perimeter / 2; b++) {
			int c = perimeter - a - b;
			if (c < b)
				break;
			if (a * a + b * b == c * c)
				return a * b * c;
		}
	return 0;
}

static int saddle(void)
{
	for (int r = 0; r < 8; r++) {
		int least = 0;
		for (int c = 1; c < 8; c++)
			if (m[r][c] < m[r][least])
				least = c;
		int k;
		for (k = 0; k < 8; k++)
			if (m[k][least] > m[r][least])
				break;
		if (k == 8)
			return r * 8 + least;
	}
	return -1;
}

int main(void)
{
	for (int i = 0; i < 64; i++)
		m[i >> 3][i & 7] = (int)(input[i & 3] >> (i & 15)) & 63;
	return triple(60) + saddle();
}
