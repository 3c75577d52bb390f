/* Product of integer matrices. */
#define N 12
static int a[N][N], b[N][N], c[N][N];

static void fill(int m[N][N], int seed)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			seed = (seed * 133 + 81) % 8095;
			m[i][j] = seed;
		}
}

static void product(int x[N][N], int y[N][N], int z[N][N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			z[i][j] = 0;
			for (int k = 0; k < N; k++)
				z[i][j] += x[i][k] * y[k][j];
		}
}

int main(void)
{
	fill(a, 5);
	fill(b, 9);
	product(a, b, c);
	return c[3][4];
}
