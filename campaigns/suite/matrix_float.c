/* Product and trace of matrices of float. */
#define N 5
static float a[N][N], b[N][N], c[N][N];

int main(void)
{
	float trace = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = (float)(i + j) * 0.5f;
			b[i][j] = (float)(i - j);
		}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;
			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	for (int i = 0; i < N; i++)
		trace += c[i][i];
	return (int)trace;
}
