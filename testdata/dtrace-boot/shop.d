provider shop {
	probe order__placed(int, char *);
	probe parcel(int, long, unsigned char, char *, short, int, long);
	probe weighed(int n, long weight) : (long weight, int n);
	probe tail(int);
	probe done();
};
