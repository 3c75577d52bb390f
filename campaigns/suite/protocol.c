/* Frames in a stream of bytes: length, content, checksum. */
unsigned char input[72];
static unsigned char frame[16];

int main(void)
{
	int state = 0, left = 0, at = 0, good = 0, bad = 0;
	unsigned sum = 0;
	for (int i = 0; i < 72; i++) {
		unsigned char c = input[i];
		if (state == 0) {
			if (c == 0x7e)
				state = 1;
		} else if (state == 1) {
			left = c & 15;
			sum = c;
			at = 0;
			state = left ? 2 : 3;
		} else if (state == 2) {
			frame[at++] = c;
			sum += c;
			if (--left == 0)
				state = 3;
		} else {
			if (((sum + c) & 255) == 0)
				good++;
			else
				bad++;
			for (int k = 0; k < at; k++)
				frame[k] = 0;
			state = 0;
		}
	}
	return good * 256 + bad;
}
