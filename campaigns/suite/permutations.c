/* All permutations of four, by exchanges in recursion. */
#define N 4
static int p[N], count;

static void permute(int k)
{
	if (k == N) {
		count += p[0] < p[N - 1];
		return;
	}
	for (int i = k; i < N; i++) {
		int t = p[k];
		p[k] = p[i];
		p[i] = t;
		permute(k + 1);
		t = p[k];
		p[k] = p[i];
		p[i] = t;
	}
}

int main(void)
{
	count = 0;
	for (int i = 0; i < N; i++)
		p[i] = i;
	permute(0);
	return count;
}
