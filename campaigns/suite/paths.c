/* Shortest ways: all pairs, and from one node by repeated search. */
#define N 10
static int d[N][N], far[N], done[N];

int main(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			d[i][j] = i == j ? 0 : (i * 7 + j * 3) % 17 + 1;
	for (int i = 0; i < N; i++) {
		far[i] = i ? 1000 : 0;
		done[i] = 0;
	}
	for (int step = 0; step < N; step++) {
		int best = -1;
		for (int i = 0; i < N; i++)
			if (!done[i] && (best < 0 || far[i] < far[best]))
				best = i;
		if (best < 0)
			break;
		done[best] = 1;
		for (int i = 0; i < N; i++)
			if (far[best] + d[best][i] < far[i])
				far[i] = far[best] + d[best][i];
	}
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				if (d[i][k] + d[k][j] < d[i][j])
					d[i][j] = d[i][k] + d[k][j];
	return far[7] + d[2][9];
}
