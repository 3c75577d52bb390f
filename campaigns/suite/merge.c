/* Merge sort from the top, recursively. */
#define N 32
static int a[N], spare[N];

static void merge(int low, int middle, int high)
{
	int i = low, j = middle, k = low;
	while (i < middle && j < high)
		spare[k++] = a[i] <= a[j] ? a[i++] : a[j++];
	while (i < middle)
		spare[k++] = a[i++];
	while (j < high)
		spare[k++] = a[j++];
	for (k = low; k < high; k++)
		a[k] = spare[k];
}

static void sort(int low, int high)
{
	if (high - low < 2)
		return;
	int middle = (low + high) / 2;
	sort(low, middle);
	sort(middle, high);
	merge(low, middle, high);
}

int main(void)
{
	for (int i = 0; i < N; i++)
		a[i] = (i * 17 + 3) & 31;
	sort(0, N);
	return a[4];
}
