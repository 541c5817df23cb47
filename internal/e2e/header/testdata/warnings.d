provider warnings {
	probe none();
	probe some(char, const char *, double);
};
