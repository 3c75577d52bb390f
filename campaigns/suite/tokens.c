/* A tokenizer as a state machine over bytes of an input of fixed length. */
unsigned char input[96];
enum state { BETWEEN, WORD, NUMBER, STRING };
static int counts[4];

int main(void)
{
	enum state state = BETWEEN;
	for (int i = 0; i < 96; i++) {
		unsigned char c = input[i];
		switch (state) {
		case BETWEEN:
			if (c >= 'a' && c <= 'z')
				state = WORD;
			else if (c >= '0' && c <= '9')
				state = NUMBER;
			else if (c == '"')
				state = STRING;
			break;
		case WORD:
			if (c < 'a' || c > 'z')
				state = BETWEEN;
			break;
		case NUMBER:
			if (c < '0' || c > '9')
				state = c == '"' ? STRING : BETWEEN;
			break;
		case STRING:
			if (c == '"')
				state = BETWEEN;
			break;
		}
		counts[state]++;
	}
	return counts[WORD] + 2 * counts[NUMBER];
}
