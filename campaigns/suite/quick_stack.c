/* Quick sort with a stack of its own; Lomuto's partition. */
#define N 32
static int a[N];

static int partition(int low, int high)
{
	int pivot = a[high], place = low;
	for (int k = low; k < high; k++)
		if (a[k] < pivot) {
			int t = a[k];
			a[k] = a[place];
			a[place] = t;
			place++;
		}
	a[high] = a[place];
	a[place] = pivot;
	return place;
}

int main(void)
{
	int stack[2 * N], top = 0;
	for (int i = 0; i < N; i++)
		a[i] = (i * 13 + 5) & 31;
	stack[top++] = 0;
	stack[top++] = N - 1;
	while (top > 0) {
		int high = stack[--top], low = stack[--top];
		if (low >= high)
			continue;
		int p = partition(low, high);
		stack[top++] = low;
		stack[top++] = p - 1;
		stack[top++] = p + 1;
		stack[top++] = high;
	}
	return a[3];
}
