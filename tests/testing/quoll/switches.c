/* Indirect control flow as compilers make it; every function is analysed and executed. */

int g(int x) { return x * 3; }
int h(int x) { return x + 11; }
int k(int x) { return x ^ 5; }

int (*const table[5])(int) = {g, h, k, h, g};

struct ops {
    int (*first)(int);
    int (*second)(int);
};
const struct ops one = {g, h}, two = {h, k};

int dense(int a, int b)
{
    switch (a) {
    case 0: return g(b);
    case 1: return h(b);
    case 2: return b + 7;
    case 3: return b * b;
    case 4: return b ^ 5;
    case 5: return b << 3;
    case 6: return b * 9;
    default: return -1;
    }
}

int offset(unsigned char a, int b)
{
    switch (a) {
    case 10: b += g(b); break;
    case 11: b -= h(b); break;
    case 12: b += 9; break;
    case 13: b *= b; /* falls through */
    case 14: b ^= 3; break;
    case 15: b <<= 2; break;
    case 17: b = -b; break;
    case 19: b = ~b; break;
    }
    return b * 2;
}

int masked(int a, int b)
{
    switch (a & 7) {
    case 0: return g(b);
    case 1: return h(b);
    case 2: return b + 7;
    case 3: return b * b;
    case 4: return b ^ 5;
    case 5: return b << 3;
    case 6: return b * 9;
    case 7: return -1;
    }
    return 0;
}

int negative(int a, int b)
{
    switch (a) {
    case -4: return b + 1;
    case -3: return b * 3;
    case -2: return b ^ 9;
    case -1: return b - 4;
    case 0: return g(b);
    case 1: return b << 1;
    case 2: return h(b);
    }
    return b;
}

int inside(int a, int b)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        switch ((a >> i) & 15) {
        case 1: sum += 3; break;
        case 2: sum -= b; break;
        case 3: sum *= 3; break;
        case 4: sum ^= b; break;
        case 5: sum += g(b); break;
        case 6: sum |= 3; break;
        }
    }
    return sum;
}

int bounded(unsigned i, int x)
{
    if (i < 5)
        return table[i](x) + 1;
    return 0;
}

int wrapped(unsigned i, int x) { return table[i & 3](x) + 1; }

int chosen(int c, int x)
{
    const struct ops *p = c & 1 ? &one : &two;
    return p->second(x) + 2;
}

int argument(int (*f)(int), int x) { return f(x) + 1; }

int main(int a, int b)
{
    return dense(a, b) + offset(a, b) + masked(a, b) + negative(a, b) + inside(a, b)
           + bounded(a, b) + wrapped(a, b) + chosen(a, b) + argument(a & 1 ? g : h, b);
}
