/* Horspool's search of several words in a text. */
static const char *const words[] = { "lazy", "quick", "over", "absent", "dog" };
static char text[] = "the quick brown fox jumps over the lazy dog and runs away";
volatile int input[1];
static unsigned char skip[256];

static unsigned length(const char *s)
{
	unsigned n = 0;
	while (*s++)
		n++;
	return n;
}

static int find(const char *word, unsigned size)
{
	unsigned n = length(word);
	for (unsigned i = 0; i < 256; i++)
		skip[i] = (unsigned char)n;
	for (unsigned i = 0; i + 1 < n; i++)
		skip[(unsigned char)word[i]] = (unsigned char)(n - 1 - i);
	unsigned at = 0;
	while (at + n <= size) {
		unsigned k = n;
		while (k > 0 && text[at + k - 1] == word[k - 1])
			k--;
		if (k == 0)
			return (int)at;
		at += skip[(unsigned char)text[at + n - 1]];
	}
	return -1;
}

int main(void)
{
	int sum = input[0];
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		sum += find(words[i], sizeof text - 1);
	return sum;
}
