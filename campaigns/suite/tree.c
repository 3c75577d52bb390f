/* Depth and sum of a complete tree in an array, recursively. */
#define N 31
static int node[N];

static int sum(int i)
{
	if (i >= N)
		return 0;
	return node[i] + sum(2 * i + 1) + sum(2 * i + 2);
}

int main(void)
{
	for (int i = 0; i < N; i++)
		node[i] = i * i;
	return sum(0);
}
