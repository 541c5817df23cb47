#include "usdt_inline.h"

USDT_DEFINE_SEMA(orders);

int main(void)
{
	usdt_inline(1);
	usdt_cxx();
	sdt_orders_semaphore = 1;
	usdt_inline(2);
	shop_own_semaphore = 1;
	usdt_inline(3);
	usdt_cxx();
	return 0;
}
