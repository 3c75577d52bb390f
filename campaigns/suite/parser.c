/* Recursive descent over a constant expression. */
static const char text[] = "2*(3+4*(5-1))+7*(8-(2+1))";
static const char *at;

static int sum(void);

static int number(void)
{
	int n = 0;
	while (*at >= '0' && *at <= '9')
		n = n * 10 + *at++ - '0';
	return n;
}

static int factor(void)
{
	if (*at == '(') {
		at++;
		int v = sum();
		at++;
		return v;
	}
	return number();
}

static int term(void)
{
	int v = factor();
	while (*at == '*') {
		at++;
		v *= factor();
	}
	return v;
}

static int sum(void)
{
	int v = term();
	while (*at == '+' || *at == '-') {
		char op = *at++;
		int w = term();
		v = op == '+' ? v + w : v - w;
	}
	return v;
}

int main(void)
{
	at = text;
	return sum();
}
