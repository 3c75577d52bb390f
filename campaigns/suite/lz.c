/* Compression by matches in a window. */
#define N 64
static unsigned char text[N], out[2 * N];

int main(void)
{
	int at = 0, size = 0;
	for (int i = 0; i < N; i++)
		text[i] = (unsigned char)("abcabcdabc"[i % 10]);
	while (at < N) {
		int best = 0, place = 0;
		for (int from = at > 15 ? at - 15 : 0; from < at; from++) {
			int n = 0;
			while (n < 7 && at + n < N && text[from + n] == text[at + n])
				n++;
			if (n > best) {
				best = n;
				place = at - from;
			}
		}
		if (best > 1) {
			out[size++] = (unsigned char)(128 | place << 3 | best);
			at += best;
		} else
			out[size++] = text[at++];
	}
	return size;
}
