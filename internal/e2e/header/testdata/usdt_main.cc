#include "usdt_inline.h"

USDT_DEFINE_SEMA(orders);

int main()
{
	usdt_cxx();
	return 0;
}
