/* The executable that runs the library. */
int headertest_main(void);

int main(void)
{
	return headertest_main();
}
