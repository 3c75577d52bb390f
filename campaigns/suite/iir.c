/* A recursive filter in floating point. */
static float history[3];

static float step(float x)
{
	float y = 0.2f * x + 1.1f * history[0] - 0.4f * history[1];
	history[2] = history[1];
	history[1] = history[0];
	history[0] = y;
	return y;
}

int main(void)
{
	float last = 0;
	for (int i = 0; i < 20; i++)
		last = step((float)(i & 3));
	return (int)last;
}
