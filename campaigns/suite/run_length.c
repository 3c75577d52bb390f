/* Run-length coding of an input, and decoding of the result. */
unsigned char input[64];
static unsigned char coded[128], plain[64];

static int encode(const unsigned char *from, int n, unsigned char *to)
{
	int out = 0, i = 0;
	while (i < n) {
		int run = 1;
		while (i + run < n && run < 255 && from[i + run] == from[i])
			run++;
		to[out++] = (unsigned char)run;
		to[out++] = from[i];
		i += run;
	}
	return out;
}

int main(void)
{
	int size = encode(input, 64, coded), out = 0;
	for (int i = 0; i + 1 < size; i += 2)
		for (int k = 0; k < coded[i] && out < 64; k++)
			plain[out++] = coded[i + 1];
	return plain[9] + size;
}
