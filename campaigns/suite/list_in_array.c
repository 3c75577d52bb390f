/* A list linked by indices: insertion in order, with a limit, and a walk. */
#define N 24
static struct node { int key; signed char next; } nodes[N];
int input[N];

int main(void)
{
	int first = -1, sum = 0;
	for (int i = 0; i < N; i++) {
		int before = -1, at = first;
		for (int steps = 0; at >= 0 && steps < N && nodes[at].key < input[i]; steps++) {
			before = at;
			at = nodes[at].next;
		}
		nodes[i].key = input[i];
		nodes[i].next = (signed char)at;
		if (before < 0)
			first = i;
		else
			nodes[before].next = (signed char)i;
	}
	for (int at = first, steps = 0; at >= 0 && steps < N; at = nodes[at].next, steps++)
		sum += nodes[at].key;
	return sum;
}
