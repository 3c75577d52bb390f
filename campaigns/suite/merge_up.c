/* Merge sort from the bottom: widths double. */
#define N 64
static short a[N], b[N];

int main(void)
{
	short *from = a, *to = b;
	for (int i = 0; i < N; i++)
		a[i] = (short)((i * 17 + 3) & 63);
	for (int width = 1; width < N; width *= 2) {
		for (int start = 0; start < N; start += 2 * width) {
			int middle = start + width, end = start + 2 * width;
			int i = start, j = middle;
			for (int k = start; k < end; k++)
				if (i < middle && (j >= end || from[i] <= from[j]))
					to[k] = from[i++];
				else
					to[k] = from[j++];
		}
		short *t = from;
		from = to;
		to = t;
	}
	return from[9];
}
