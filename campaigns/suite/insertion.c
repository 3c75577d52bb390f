/* Insertion sort; the place is searched downwards. */
#define N 50
int input[N];

int main(void)
{
	for (int i = 1; i < N; i++) {
		int key = input[i], j = i - 1;
		while (j >= 0 && input[j] > key) {
			input[j + 1] = input[j];
			j--;
		}
		input[j + 1] = key;
	}
	return input[N / 2];
}
