/* What each object of a form has in its section armed_forms. */
struct form {
	const char *name;
	void (*hit)(unsigned long, unsigned long);	/* reaches its probe once; the first is not 0 */
};
