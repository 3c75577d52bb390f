/* Checksums by bit and by table. */
unsigned char input[80];
static unsigned table[256];

static unsigned by_bit(const unsigned char *p, int n)
{
	unsigned crc = 0xffff;
	while (n-- > 0) {
		crc ^= (unsigned)*p++ << 8;
		for (int k = 0; k < 8; k++)
			crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
	}
	return crc & 0xffff;
}

static unsigned by_table(const unsigned char *p, int n)
{
	unsigned crc = 0xffffffff;
	while (n--)
		crc = table[(crc ^ *p++) & 255] ^ (crc >> 8);
	return ~crc;
}

int main(void)
{
	for (unsigned i = 0; i < 256; i++) {
		unsigned c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? (c >> 1) ^ 0xedb88320 : c >> 1;
		table[i] = c;
	}
	return (int)(by_bit(input, 80) ^ by_table(input, 80));
}
