/* Decoding of prefix codes bit by bit through a tree in arrays. */
static const short left[7] = {1, 3, 5, -1, -2, -3, -4}, right[7] = {2, 4, 6, -5, -6, -7, -8};
unsigned input[8];

int main(void)
{
	unsigned bits = 0, word = 0;
	int node = 0, sum = 0, used = 0;
	for (int symbols = 0; symbols < 40;) {
		if (bits == 0) {
			word = input[used++ & 7];
			bits = 32;
		}
		node = word & 1 ? right[node] : left[node];
		word >>= 1;
		bits--;
		if (node < 0) {
			sum -= node;
			node = 0;
			symbols++;
		}
		if (used > 40)
			break;
	}
	return sum;
}
