/* Recursive quick sort. */
#define N 32
static int a[N];

static void sort(int low, int high)
{
	int i = low, j = high, pivot = a[(low + high) / 2];
	while (i <= j) {
		while (a[i] < pivot)
			i++;
		while (a[j] > pivot)
			j--;
		if (i <= j) {
			int t = a[i];
			a[i++] = a[j];
			a[j--] = t;
		}
	}
	if (low < j)
		sort(low, j);
	if (i < high)
		sort(i, high);
}

int main(void)
{
	for (int i = 0; i < N; i++)
		a[i] = (i * 13 + 5) & 31;
	sort(0, N - 1);
	return a[7];
}
