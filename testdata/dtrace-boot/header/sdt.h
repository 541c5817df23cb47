/* The macros of include/sdt.h, by those of the header that is made of the provider file. */
#include "shop.h"

#define fire_shop___order__placed SHOP_ORDER_PLACED
#define fire_shop___parcel SHOP_PARCEL
#define fire_shop___weighed SHOP_WEIGHED
#define fire_shop___tail SHOP_TAIL
#define fire_shop___done SHOP_DONE

#define DTRACE_PROBE(id) fire_##id()
#define DTRACE_PROBE1(id, t1, a1) fire_##id((t1)(a1))
#define DTRACE_PROBE2(id, t1, a1, t2, a2) fire_##id((t1)(a1), (t2)(a2))
#define DTRACE_PROBE7(id, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7) \
	fire_##id((t1)(a1), (t2)(a2), (t3)(a3), (t4)(a4), (t5)(a5), (t6)(a6), (t7)(a7))
