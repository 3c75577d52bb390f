/* Backtracking on a small board: rows, columns and blocks of four. */
static unsigned char board[16] = { 1, 0, 0, 0, 0, 0, 3, 0, 0, 4, 0, 0, 0, 0, 0, 2 };
volatile int input[1];

static int allowed(int at, int value)
{
	int row = at >> 2, column = at & 3;
	for (int i = 0; i < 4; i++) {
		if (board[row * 4 + i] == value || board[i * 4 + column] == value)
			return 0;
		if (board[((row & 2) + (i >> 1)) * 4 + (column & 2) + (i & 1)] == value)
			return 0;
	}
	return 1;
}

static int solve(int at)
{
	while (at < 16 && board[at])
		at++;
	if (at == 16)
		return 1;
	for (int value = 1; value <= 4; value++)
		if (allowed(at, value)) {
			board[at] = (unsigned char)value;
			if (solve(at + 1))
				return 1;
			board[at] = 0;
		}
	return 0;
}

int main(void) { return solve(0) + input[0]; }
