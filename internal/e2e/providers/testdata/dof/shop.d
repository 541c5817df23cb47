provider shop {
	probe order__placed(int, char *);
	probe weighed(int n, long weight) : (long weight, int n, int n);
	probe wide(int, int, int, int, int, int, int, long);
	probe empty();
};
#pragma D attributes Evolving/Stable/Common provider shop provider
#pragma D attributes Private/private/ISA provider shop args
provider bank_ {
	probe paid(unsigned long long);
	probe unused(int);
};
