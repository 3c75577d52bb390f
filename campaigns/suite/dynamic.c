/* Tables filled by recurrences: longest common subsequence, knapsack, triangle of Pascal. */
static const char one[] = "gattacagattac", two[] = "tagacatgacat";
static unsigned char common[14][13];
static int best[51], pascal[16][16];

int main(void)
{
	static const unsigned char weight[6] = {5, 9, 13, 7, 3, 11}, worth[6] = {8, 14, 22, 9, 4, 17};
	for (int i = 1; i <= 13; i++)
		for (int j = 1; j <= 12; j++)
			if (one[i - 1] == two[j - 1])
				common[i][j] = common[i - 1][j - 1] + 1;
			else
				common[i][j] = common[i - 1][j] > common[i][j - 1] ? common[i - 1][j] : common[i][j - 1];
	for (int i = 0; i < 6; i++)
		for (int w = 50; w >= weight[i]; w--)
			if (best[w - weight[i]] + worth[i] > best[w])
				best[w] = best[w - weight[i]] + worth[i];
	for (int n = 0; n < 16; n++) {
		pascal[n][0] = 1;
		for (int k = 1; k <= n; k++)
			pascal[n][k] = pascal[n - 1][k - 1] + pascal[n - 1][k];
	}
	return common[13][12] + best[50] + pascal[15][7];
}
