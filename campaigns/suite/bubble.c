/* Bubble sort with an early exit. */
#define N 60
static int numbers[N];

static void sort(int *a, int n)
{
	for (int i = 0; i < n - 1; i++) {
		int moved = 0;
		for (int j = 0; j < n - 1 - i; j++)
			if (a[j] > a[j + 1]) {
				int t = a[j];
				a[j] = a[j + 1];
				a[j + 1] = t;
				moved = 1;
			}
		if (!moved)
			break;
	}
}

int main(void)
{
	for (int i = 0; i < N; i++)
		numbers[i] = N - i;
	sort(numbers, N);
	return numbers[0];
}
