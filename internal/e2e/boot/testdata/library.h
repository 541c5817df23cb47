/* A line that a tracer has to print. */
#define WANT(...) (printf("want " __VA_ARGS__), putchar('\n'))

void in_library(int n);
