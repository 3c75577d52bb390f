/* Text of 64 letters to bytes, with padding; the table of letters is computed. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
char input[81] = "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==";
static unsigned char values[256], out[60];

int main(void)
{
	unsigned bits = 0, n = 0, size = 0;
	for (int i = 0; i < 256; i++)
		values[i] = 255;
	for (int i = 0; letters[i]; i++)
		values[(unsigned char)letters[i]] = (unsigned char)i;
	for (const char *p = input; p < input + 80 && *p && *p != '='; p++) {
		unsigned v = values[(unsigned char)*p];
		if (v == 255)
			continue;
		bits = bits << 6 | v;
		if (++n == 4) {
			n = 0;
			for (int k = 16; k >= 0; k -= 8)
				if (size < sizeof out)
					out[size++] = (unsigned char)(bits >> k);
		}
	}
	unsigned sum = 0;
	for (unsigned i = 0; i < size; i++)
		sum = sum * 31 + out[i];
	return (int)sum;
}
