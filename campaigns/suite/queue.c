/* A simulated queue in a ring, with arrivals from a generator. */
#define SIZE 16
static struct job { unsigned start, work; } ring[SIZE];
static unsigned head, used, state = 1;

static unsigned random(void)
{
	state = state * 1103515245u + 12345u;
	return state >> 16;
}

int main(void)
{
	unsigned waited = 0, busy = 0;
	state = 7;
	head = used = 0;
	for (unsigned now = 0; now < 120; now++) {
		if ((random() & 3) == 0 && used < SIZE) {
			struct job *j = &ring[(head + used) % SIZE];
			j->start = now;
			j->work = 1 + (random() & 3);
			used++;
		}
		if (busy)
			busy--;
		else if (used) {
			waited += now - ring[head].start;
			busy = ring[head].work;
			head = (head + 1) % SIZE;
			used--;
		}
	}
	return (int)waited;
}
