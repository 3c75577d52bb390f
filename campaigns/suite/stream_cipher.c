/* A stream cipher with a permutation of 256 bytes. */
static unsigned char s[256];
unsigned char input[64];
static const unsigned char key[8] = {1, 35, 69, 103, 137, 171, 205, 239};

int main(void)
{
	unsigned i, j = 0;
	for (i = 0; i < 256; i++)
		s[i] = (unsigned char)i;
	for (i = 0; i < 256; i++) {
		j = (j + s[i] + key[i & 7]) & 255;
		unsigned char t = s[i];
		s[i] = s[j];
		s[j] = t;
	}
	j = 0;
	for (unsigned n = 0; n < 64; n++) {
		i = (n + 1) & 255;
		j = (j + s[i]) & 255;
		unsigned char t = s[i];
		s[i] = s[j];
		s[j] = t;
		input[n] ^= s[(s[i] + s[j]) & 255];
	}
	return input[5];
}
