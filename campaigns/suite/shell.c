/* Shell sort: distances that halve. */
#define N 64
static int v[N];

static void sort(int *a, int n)
{
	for (int gap = n / 2; gap > 0; gap /= 2)
		for (int i = gap; i < n; i++) {
			int t = a[i], j;
			for (j = i; j >= gap && a[j - gap] > t; j -= gap)
				a[j] = a[j - gap];
			a[j] = t;
		}
}

int main(void)
{
	for (int i = 0; i < N; i++)
		v[i] = (i * 29) & 63;
	sort(v, N);
	return v[10];
}
