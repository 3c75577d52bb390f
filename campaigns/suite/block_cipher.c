/* A block cipher of additions, shifts and xors. */
unsigned input[16];
static const unsigned key[4] = {0x11223344, 0x9abcdef0, 0x0badcafe, 0x31415926};

static void encipher(unsigned *block)
{
	unsigned a = block[0], b = block[1], sum = 0;
	for (int i = 0; i < 32; i++) {
		a += (((b << 4) ^ (b >> 5)) + b) ^ (sum + key[sum & 3]);
		sum += 0x9e3779b9;
		b += (((a << 4) ^ (a >> 5)) + a) ^ (sum + key[(sum >> 11) & 3]);
	}
	block[0] = a;
	block[1] = b;
}

int main(void)
{
	for (int i = 0; i < 16; i += 2)
		encipher(input + i);
	return (int)input[3];
}
