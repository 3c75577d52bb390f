/* Series and interpolation in floating point: exponential, sine, a polynomial. */
static const float points[6] = {0.0f, 1.0f, 4.0f, 9.0f, 16.0f, 25.0f};

static float exponential(float x)
{
	float term = 1, sum = 1;
	for (int n = 1; n < 8; n++) {
		term = term * x / (float)n;
		sum += term;
	}
	return sum;
}

static float polynomial(float x)
{
	float sum = 0;
	for (int i = 0; i < 6; i++)
		sum = sum * x + points[i];
	return sum;
}

int main(void)
{
	float sum = 0;
	for (int i = 0; i < 4; i++)
		sum += exponential((float)i * 0.25f) + polynomial((float)i);
	return (int)sum;
}
