void print_words(void);
int main(void) { print_words(); return 0; }
