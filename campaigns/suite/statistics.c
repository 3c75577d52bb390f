/* Mean, variance and correlation in double precision. */
#define N 16
static double x[N], y[N];

static double mean(const double *v)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += v[i];
	return sum / N;
}

int main(void)
{
	for (int i = 0; i < N; i++) {
		x[i] = i * 1.5;
		y[i] = (i * 7) % 11;
	}
	double mx = mean(x), my = mean(y), xx = 0, yy = 0, xy = 0;
	for (int i = 0; i < N; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		yy += (y[i] - my) * (y[i] - my);
		xy += (x[i] - mx) * (y[i] - my);
	}
	return (int)(100 * xy * xy / (xx * yy));
}
