/* A copy whose loop is entered in the middle. */
static int from[43], to[43];

static void copy(int *d, const int *s, int count)
{
	int n = (count + 7) / 8;
	switch (count % 8) {
	case 0: do { *d++ = *s++;
	/* fall through */
	case 7: *d++ = *s++;
	/* fall through */
	case 6: *d++ = *s++;
	/* fall through */
	case 5: *d++ = *s++;
	/* fall through */
	case 4: *d++ = *s++;
	/* fall through */
	case 3: *d++ = *s++;
	/* fall through */
	case 2: *d++ = *s++;
	/* fall through */
	case 1: *d++ = *s++;
		} while (--n > 0);
	}
}

int main(void)
{
	for (int i = 0; i < 43; i++)
		from[i] = i;
	copy(to, from, 43);
	return to[42];
}
