/* Binary searches for every number of an input. */
static int sorted[63];
int input[20];

static int place(int key)
{
	int low = 0, high = 62;
	while (low <= high) {
		int middle = (low + high) >> 1;
		if (sorted[middle] == key)
			return middle;
		if (sorted[middle] < key)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 63; i++)
		sorted[i] = 3 * i + 1;
	for (int i = 0; i < 20; i++)
		sum += place(input[i] & 255);
	return sum;
}
