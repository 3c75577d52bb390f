// Commands by name in a table, and numbers from text.
//! declared: int shell_line(char *); extern char shell_input[];
//! call: return shell_line(shell_input);
//! SEARCH: for (const struct command *c = commands; c->name; c++) if (!compare(c->name, word)) return c->run(argument, rest);
//! SEARCH: for (unsigned i = 0; i < 4; i++) if (!compare(commands[i].name, word)) return commands[i].run(argument, rest);
char shell_input[48];
static unsigned values[8];
struct command {
    const char *name;
    int (*run)(unsigned, const char *);
    const char *help;
};
static int compare(const char *a, const char *b) {
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *(unsigned char *)a - *(unsigned char *)b;
}
static unsigned parse(const char **s) {
    unsigned n = 0;
    while (**s >= '0' && **s <= '9') n = n * 10 + *(*s)++ - '0';
    return n;
}
static int run_set(unsigned n, const char *rest) {
    values[n & 7] = parse(&rest);
    return 0;
}
static int run_get(unsigned n, const char *rest) {
    return (int)values[n & 7];
}
static int run_sum(unsigned n, const char *rest) {
    int s = 0;
    while (*rest) {
        while (*rest == ' ') rest++;
        s += (int)parse(&rest);
    }
    return s;
}
static int run_help(unsigned n, const char *rest);
static const struct command commands[] = { { "set", run_set, "n v" }, { "get", run_get, "n" }, { "sum", run_sum, "v..." }, { "help", run_help, "" }, { 0, 0, 0 } };
static int run_help(unsigned n, const char *rest) {
    int l = 0;
    for (const struct command *c = commands; c->name; c++) for (const char *h = c->help; *h; h++) l++;
    return l;
}
int shell_line(char *line) {
    char word[12];
    unsigned i = 0;
    while (*line && *line != ' ' && i < sizeof word - 1) word[i++] = *line++;
    word[i] = 0;
    while (*line == ' ') line++;
    const char *rest = line;
    unsigned argument = parse(&rest);
    @SEARCH@
    return -1;
}
