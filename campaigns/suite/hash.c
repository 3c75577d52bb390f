/* A hash over blocks of 16 words, and a table with linear probing. */
unsigned input[32];
static unsigned slots[64];

static unsigned rotate(unsigned x, int n) { return x << n | x >> (32 - n); }

static unsigned mix(const unsigned *w)
{
	unsigned a = 1, b = 2, c = 3;
	for (int r = 0; r < 48; r++) {
		unsigned f = r < 16 ? (a & b) | (~a & c) : r < 32 ? a ^ b ^ c : b ^ (a | ~c);
		unsigned t = c;
		c = b;
		b = a;
		a = t + rotate(a + f + w[(r * 7) & 15], r % 23 + 1);
	}
	return a ^ b ^ c;
}

int main(void)
{
	unsigned found = 0;
	for (int i = 0; i < 32; i++) {
		unsigned key = input[i] | 1, at = key * 2654435761u >> 26;
		for (int probes = 0; probes < 64 && slots[at] && slots[at] != key; probes++)
			at = (at + 1) & 63;
		found += slots[at] == key;
		slots[at] = key;
	}
	return (int)(found + mix(input) + mix(input + 16));
}
