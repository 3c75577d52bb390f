/* An interpreter of byte code with a limit of steps. */
enum { PUSH, ADD, SUB, DUP, JUMP, BRANCH, LOAD, STORE, STOP };
static const signed char code[] = {
	PUSH, 9, STORE, 0, PUSH, 0, STORE, 1,
	LOAD, 1, LOAD, 0, ADD, STORE, 1,
	LOAD, 0, PUSH, 1, SUB, DUP, STORE, 0, BRANCH, 8, STOP};
static int stack[16], cells[4];

int main(void)
{
	int pc = 0, top = 0;
	for (int steps = 0; steps < 150; steps++) {
		int op = code[pc++];
		switch (op) {
		case PUSH: stack[top++ & 15] = code[pc++]; break;
		case ADD: top--; stack[(top - 1) & 15] += stack[top & 15]; break;
		case SUB: top--; stack[(top - 1) & 15] -= stack[top & 15]; break;
		case DUP: stack[top & 15] = stack[(top - 1) & 15]; top++; break;
		case JUMP: pc = code[pc]; break;
		case BRANCH: top--; pc = stack[top & 15] ? code[pc] : pc + 1; break;
		case LOAD: stack[top++ & 15] = cells[code[pc++] & 3]; break;
		case STORE: top--; cells[code[pc++] & 3] = stack[top & 15]; break;
		default: return cells[1];
		}
	}
	return -1;
}
