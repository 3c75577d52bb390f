/* Decomposition of a matrix and substitution: starts move with the loops around. */
#define N 6
static float a[N][N], b[N];

int main(void)
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			a[i][j] = i == j ? 10.0f : (float)((i + 2 * j) % 5);
		b[i] = (float)i;
	}
	for (int k = 0; k < N - 1; k++)
		for (int i = k + 1; i < N; i++) {
			float f = a[i][k] / a[k][k];
			for (int j = k + 1; j < N; j++)
				a[i][j] -= f * a[k][j];
			b[i] -= f * b[k];
		}
	for (int i = N - 1; i >= 0; i--) {
		for (int j = i + 1; j < N; j++)
			b[i] -= a[i][j] * b[j];
		b[i] /= a[i][i];
	}
	return (int)b[2];
}
