/* Selection sort by repeated search for the minimum, and the k smallest of an input. */
#define N 40
int input[N];
static int small[8];

int main(void)
{
	int count = 0;
	for (int k = 0; k < 8; k++) {
		int best = 0;
		for (int i = 1; i < N; i++)
			if (input[i] < input[best])
				best = i;
		small[count++] = input[best];
		input[best] = 0x7fffffff;
	}
	for (int i = 0; i < N - 1; i++) {
		int least = i;
		for (int j = i + 1; j < N; j++)
			if (input[j] < input[least])
				least = j;
		int t = input[i];
		input[i] = input[least];
		input[least] = t;
	}
	return small[3] + input[0];
}
