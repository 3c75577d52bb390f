/* A filter of 16 taps over 64 samples, integers. */
static const short taps[16] = {-3, 5, -9, 14, -20, 31, -60, 180, 180, -60, 31, -20, 14, -9, 5, -3};
short input[80];
static int filtered[64];

int main(void)
{
	int energy = 0;
	for (int i = 0; i < 64; i++) {
		int sum = 0;
		for (int k = 0; k < 16; k++)
			sum += taps[k] * input[i + k];
		filtered[i] = sum >> 8;
	}
	for (int i = 0; i < 64; i++)
		energy += filtered[i] * filtered[i] >> 4;
	return energy;
}
