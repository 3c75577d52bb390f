/* Lengths and bounds that arrive as arguments and are limited. */
static int data[128];

static int walk(const int *a, unsigned from, unsigned to, unsigned step)
{
	int sum = 0;
	for (unsigned i = from; i < to; i += step)
		sum += a[i];
	return sum;
}

int main(unsigned n, unsigned m)
{
	unsigned count = n > 128 ? 128 : n, start = m & 31;
	int sum = 0;
	for (unsigned i = 0; i < count; i++)
		data[i] = (int)(i ^ m);
	if (start < count)
		sum = walk(data, start, count, 1);
	for (unsigned i = count; i-- > 0;)
		sum -= data[i];
	return sum + walk(data, 0, count, (m & 3) + 1);
}
