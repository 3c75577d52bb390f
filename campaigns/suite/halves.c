/* Divide and conquer: the greatest sum of neighbours, and a tree in an array. */
#define N 32
static int a[N];

static int greatest(int low, int high)
{
	if (low == high)
		return a[low];
	int middle = (low + high) / 2, sum = 0, left = -1000000, right = -1000000;
	for (int i = middle; i >= low; i--) {
		sum += a[i];
		if (sum > left)
			left = sum;
	}
	sum = 0;
	for (int i = middle + 1; i <= high; i++) {
		sum += a[i];
		if (sum > right)
			right = sum;
	}
	int one = greatest(low, middle), other = greatest(middle + 1, high);
	int across = left + right;
	if (one > across)
		across = one;
	return other > across ? other : across;
}

int main(void)
{
	for (int i = 0; i < N; i++)
		a[i] = (i * 29) % 23 - 11;
	return greatest(0, N - 1);
}
