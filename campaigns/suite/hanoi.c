/* Towers moved recursively. */
static int moves, height[3];

static void move(int n, int from, int to, int by)
{
	if (n == 0)
		return;
	move(n - 1, from, by, to);
	height[from]--;
	height[to]++;
	moves++;
	move(n - 1, by, to, from);
}

int main(void)
{
	moves = 0;
	height[0] = 6;
	height[1] = height[2] = 0;
	move(6, 0, 2, 1);
	return moves;
}
