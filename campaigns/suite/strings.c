/* Strings of constants: length, copy, comparison, reversal, search of a word. */
static const char text[] = "the quick brown fox jumps over the lazy dog and runs away";
static const char word[] = "lazy";
static char copy[80];

static int length(const char *s)
{
	int n = 0;
	while (s[n])
		n++;
	return n;
}

static int find(const char *s, const char *w)
{
	for (int i = 0; s[i]; i++) {
		int j = 0;
		while (w[j] && s[i + j] == w[j])
			j++;
		if (!w[j])
			return i;
	}
	return -1;
}

int main(void)
{
	const char *s = text;
	char *d = copy;
	while ((*d++ = *s++))
		;
	int n = length(text), same = 0;
	for (int i = 0; i < n / 2; i++) {
		char t = copy[i];
		copy[i] = copy[n - 1 - i];
		copy[n - 1 - i] = t;
	}
	for (int i = 0; i < n; i++)
		same += copy[i] == text[i];
	return same + find(text, word);
}
