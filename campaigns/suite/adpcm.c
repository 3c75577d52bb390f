/* Samples to four bits by differences, and back, with a table of steps. */
short input[32];
static const short steps[89] = {
	7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118,
	130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060,
	1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132,
	7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
};
static const signed char moves[16] = { -1, -1, -1, -1, 2, 4, 6, 8, -1, -1, -1, -1, 2, 4, 6, 8 };
struct codec { int value, index; };
static unsigned char coded[16];

static int clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

static void update(struct codec *c, int code)
{
	int step = steps[c->index], delta = step >> 3;
	for (int bit = 4; bit; bit >>= 1, step >>= 1)
		if (code & bit)
			delta += step;
	c->value = clamp(code & 8 ? c->value - delta : c->value + delta, -32768, 32767);
	c->index = clamp(c->index + moves[code], 0, 88);
}

static int encode(struct codec *c, int sample)
{
	int difference = sample - c->value, code = 0, step = steps[c->index];
	if (difference < 0) {
		code = 8;
		difference = -difference;
	}
	for (int bit = 4; bit; bit >>= 1) {
		if (difference >= step) {
			code |= bit;
			difference -= step;
		}
		step >>= 1;
	}
	update(c, code);
	return code;
}

int main(void)
{
	struct codec in = { 0, 0 }, out = { 0, 0 };
	for (int i = 0; i < 32; i += 2) {
		int low = encode(&in, input[i]);
		coded[i / 2] = (unsigned char)(low | encode(&in, input[i + 1]) << 4);
	}
	int sum = 0;
	for (int i = 0; i < 16; i++) {
		update(&out, coded[i] & 15);
		sum += out.value;
		update(&out, coded[i] >> 4);
		sum ^= out.value;
	}
	return sum;
}
