/* Macros of libbpf's usdt.h in an inline function of several files, of C and of C++. */
#include <stdio.h>

#include <usdt.h>

USDT_DECLARE_SEMA(orders);

static inline __attribute__((always_inline)) void usdt_inline(int x)
{
	USDT(shop, none);
	USDT(shop, bare, x);
	USDT_WITH_SEMA(shop, own, x, "text", &x);
	USDT_WITH_EXPLICIT_SEMA(orders, shop, shared, x, 2);
	USDT_WITH_EXPLICIT_SEMA(orders, shop, other);
	USDT(shop, twelve, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	printf("%d own %d orders %d\n", x, USDT_IS_ACTIVE(shop, own), USDT_SEMA_IS_ACTIVE(orders));
}

#ifdef __cplusplus
extern "C" {
#endif
extern volatile unsigned short shop_own_semaphore __attribute__((visibility("hidden")));
extern volatile unsigned short sdt_orders_semaphore __attribute__((visibility("hidden")));
void usdt_cxx(void);
#ifdef __cplusplus
}
#endif
