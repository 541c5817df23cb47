/* -DSHOW: prints what show.c does. The twin's stubs print instead. */
int headertest_c(void);
int headertest_cxx(void);
void headertest_show(void);

#ifdef LIBRARY
int headertest_main(void);
int headertest_main(void)
#else
int main(void)
#endif
{
#ifdef SHOW
	headertest_show();
#endif
	return headertest_c() + headertest_cxx();
}
