// For what has no declaration that the debug information tells.
void __dtrace_probe_plain___declared(const char *s, enum app_colour, signed char, unsigned short);
plain___file(int n, unsigned char);
plain___wide(int, long, short, char *, int, unsigned char, int, unsigned, signed char, unsigned short, long);
plain___wide__tail(int, long, short, char *, int, unsigned char, int, unsigned, signed char, unsigned short, long);
void __dtrace_probe_plain__text___end__of__line(int);
