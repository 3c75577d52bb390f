/* Heap sort: sifting down doubles the index. */
#define N 40
static int h[N];

static void sift(int root, int end)
{
	int child;
	while ((child = 2 * root + 1) < end) {
		if (child + 1 < end && h[child] < h[child + 1])
			child++;
		if (h[root] >= h[child])
			return;
		int t = h[root];
		h[root] = h[child];
		h[child] = t;
		root = child;
	}
}

int main(void)
{
	for (int i = 0; i < N; i++)
		h[i] = (i * 23 + 7) % N;
	for (int i = N / 2 - 1; i >= 0; i--)
		sift(i, N);
	for (int end = N - 1; end > 0; end--) {
		int t = h[0];
		h[0] = h[end];
		h[end] = t;
		sift(0, end);
	}
	return h[5];
}
