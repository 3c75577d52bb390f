/* Backtracking: queens on a board of five by five. */
#define N 5
static int place[N], solutions;

static int safe(int row, int column)
{
	for (int r = 0; r < row; r++)
		if (place[r] == column || place[r] - column == row - r || column - place[r] == row - r)
			return 0;
	return 1;
}

static void solve(int row)
{
	if (row == N) {
		solutions++;
		return;
	}
	for (int c = 0; c < N; c++)
		if (safe(row, c)) {
			place[row] = c;
			solve(row + 1);
		}
}

int main(void)
{
	solutions = 0;
	solve(0);
	return solutions;
}
