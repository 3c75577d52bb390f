/* A prefix code for the frequencies of a text, with the tree in an array. */
unsigned char input[48];
struct node { int weight, left, right, used; };
static struct node nodes[32];
static unsigned char length[16];
static int count;

static int least(void)
{
	int best = -1;
	for (int i = 0; i < count; i++)
		if (!nodes[i].used && (best < 0 || nodes[i].weight < nodes[best].weight))
			best = i;
	nodes[best].used = 1;
	return best;
}

static void depths(int root)
{
	int stack[32], depth[32], top = 0;
	stack[top] = root;
	depth[top++] = 0;
	while (top > 0) {
		int at = stack[--top], d = depth[top];
		if (nodes[at].left < 0) {
			length[at] = (unsigned char)d;
			continue;
		}
		stack[top] = nodes[at].left;
		depth[top++] = d + 1;
		stack[top] = nodes[at].right;
		depth[top++] = d + 1;
	}
}

int main(void)
{
	for (int i = 0; i < 16; i++) {
		nodes[i].weight = 1;
		nodes[i].left = nodes[i].right = -1;
		nodes[i].used = 0;
	}
	for (int i = 0; i < 48; i++)
		nodes[input[i] & 15].weight++;
	for (count = 16; count < 31; count++) {
		int a = least(), b = least();
		nodes[count].weight = nodes[a].weight + nodes[b].weight;
		nodes[count].left = a;
		nodes[count].right = b;
		nodes[count].used = 0;
	}
	depths(30);
	int bits = 0;
	for (int i = 0; i < 48; i++)
		bits += length[input[i] & 15];
	return bits;
}
