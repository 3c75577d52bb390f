/* A picture of bytes: a blur, edges, and a histogram. */
#define W 16
#define H 12
unsigned char input[W * H];
static unsigned char out[H][W];
static int histogram[16];

int main(void)
{
	for (int y = 1; y < H - 1; y++)
		for (int x = 1; x < W - 1; x++) {
			int sum = 0;
			for (int j = -1; j <= 1; j++)
				for (int i = -1; i <= 1; i++)
					sum += input[(y + j) * W + x + i];
			out[y][x] = (unsigned char)(sum / 9);
		}
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			histogram[out[y][x] >> 4]++;
	return histogram[3];
}
