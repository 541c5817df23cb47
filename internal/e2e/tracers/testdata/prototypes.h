// For what has no declaration that the debug information tells.
void __dtrace_probe_plain___declared(const char *s, enum app_colour, signed char, unsigned short);
plain___file(int n, unsigned char);
void __dtrace_probe_plain__text___end__of__line(int);
