/* A matcher of patterns with . * ^ $ by recursion over pattern and text. */
char input[12];
static const char *const patterns[] = { "^a.*b$", "ab*c", "x.y*z", "^q*$" };

static int here(const char *p, const char *t);

static int star(char c, const char *p, const char *t)
{
	do {
		if (here(p, t))
			return 1;
	} while (*t && (*t++ == c || c == '.'));
	return 0;
}

static int here(const char *p, const char *t)
{
	for (;; p++, t++) {
		if (!*p)
			return 1;
		if (p[1] == '*')
			return star(*p, p + 2, t);
		if (*p == '$' && !p[1])
			return !*t;
		if (!*t || (*p != '.' && *p != *t))
			return 0;
	}
}

static int match(const char *p, const char *t)
{
	if (*p == '^')
		return here(p + 1, t);
	do {
		if (here(p, t))
			return 1;
	} while (*t++);
	return 0;
}

int main(void)
{
	static char text[13];
	int found = 0;
	for (int i = 0; i < 12; i++)
		text[i] = input[i];
	text[12] = 0;
	for (unsigned i = 0; i < sizeof patterns / sizeof *patterns; i++)
		found = found << 1 | match(patterns[i], text);
	return found;
}
