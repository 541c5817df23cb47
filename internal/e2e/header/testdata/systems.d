provider systems {
	probe none();
	probe two(int, const char *);
};
