provider shop {
	probe order__placed(int, char *);
	probe sent(int errno, const char *class);
	probe empty();
	probe wide(int, unsigned, long, unsigned char, short, char, void *, double, float, long long, unsigned short, struct box *);
	probe only__tested();
};

#pragma D attributes Evolving/Evolving/Common provider shop provider
