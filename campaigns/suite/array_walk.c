/* Walks over arrays: prefix sums, reversal, maximum, moving average. */
static int values[100], sums[100], smooth[100];

static void fill(void)
{
	for (int i = 0; i < 100; i++)
		values[i] = (i * 37 + 11) % 101;
}

static void reverse(int *a, int n)
{
	for (int i = 0, j = n - 1; i < j; i++, j--) {
		int t = a[i];
		a[i] = a[j];
		a[j] = t;
	}
}

static int maximum(const int *a, int n)
{
	int best = a[0];
	for (int i = 1; i < n; i++)
		if (a[i] > best)
			best = a[i];
	return best;
}

int main(void)
{
	fill();
	sums[0] = values[0];
	for (int i = 1; i < 100; i++)
		sums[i] = sums[i - 1] + values[i];
	reverse(values, 100);
	for (int i = 2; i < 98; i++)
		smooth[i] = (values[i - 2] + values[i - 1] + values[i] + values[i + 1] + values[i + 2]) >> 2;
	return maximum(sums, 100) + maximum(smooth, 100);
}
