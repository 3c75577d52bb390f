/* Encoding of three bytes in four characters, and the way back through a table. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
unsigned char input[48];
static char coded[64];
static unsigned char back[128], plain[48];

int main(void)
{
	int n = 0;
	for (int i = 0; i < 48; i += 3) {
		unsigned w = (unsigned)input[i] << 16 | (unsigned)input[i + 1] << 8 | input[i + 2];
		for (int k = 18; k >= 0; k -= 6)
			coded[n++] = letters[(w >> k) & 63];
	}
	for (int i = 0; i < 64; i++)
		back[(int)letters[i]] = (unsigned char)i;
	for (int i = 0, o = 0; i < n; i += 4) {
		unsigned w = 0;
		for (int k = 0; k < 4; k++)
			w = w << 6 | back[coded[i + k] & 127];
		plain[o++] = (unsigned char)(w >> 16);
		plain[o++] = (unsigned char)(w >> 8);
		plain[o++] = (unsigned char)w;
	}
	return plain[7];
}
