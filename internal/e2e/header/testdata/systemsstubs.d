provider systemsstubs {
	probe none();
	probe two(int, const char *);
};
