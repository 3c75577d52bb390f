/* A table of 256 bytes indexed by data, and a second one indexed by the result. */
static unsigned char box[256], inverse[256];
unsigned char input[64];

static void prepare(void)
{
	for (int i = 0; i < 256; i++)
		box[i] = (unsigned char)(i * 167 + 13);
	for (int i = 0; i < 256; i++)
		inverse[box[i]] = (unsigned char)i;
}

int main(void)
{
	unsigned sum = 0;
	prepare();
	for (int round = 0; round < 8; round++)
		for (int i = 0; i < 64; i++)
			input[i] = box[input[i] ^ round];
	for (int i = 0; i < 64; i++)
		sum += inverse[input[i]];
	return (int)sum;
}
