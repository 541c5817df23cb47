/* The second file that holds copies of what program.h has. */
#include "program.h"

extern "C" int headertest_cxx2(int);
static int (*volatile headertest_second)(int) = outer::shared_inline;

extern "C" int headertest_cxx2(int a)
{
	outer::pass('c');
	return a + (headertest_second == nullptr);
}
