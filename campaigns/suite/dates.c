/* Days since 1970 to a date and back. */
static const unsigned char month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
unsigned input[4];

static int leap(int y) { return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0); }

static int to_days(int y, int m, int d)
{
	int days = d - 1;
	for (int i = 1970; i < y; i++)
		days += 365 + leap(i);
	for (int i = 0; i < m; i++)
		days += month_days[i] + (i == 1 && leap(y));
	return days;
}

static int from_days(int days)
{
	int y = 1970, m = 0;
	while (days >= 365 + leap(y)) {
		days -= 365 + leap(y);
		y++;
	}
	while (m < 11 && days >= month_days[m] + (m == 1 && leap(y))) {
		days -= month_days[m] + (m == 1 && leap(y));
		m++;
	}
	return y * 372 + m * 31 + days;
}

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 4; i++)
		sum += from_days((int)(input[i] % 20000));
	return sum + to_days(2024, 6, 15);
}
