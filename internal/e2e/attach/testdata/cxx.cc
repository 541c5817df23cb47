#include "app.h"

template struct app_class<short>; /* that no one uses */

long app_cxx(int n) { return app_class<int>::method(n) + app_inline(n) + app_other(n); }
