/* A library that takes over probed functions of another. */
unsigned long calls_zero(void)
{
	return 12345;
}

unsigned long calls_args(unsigned long a, unsigned long b, unsigned long c)
{
	return a ^ b ^ c;
}
