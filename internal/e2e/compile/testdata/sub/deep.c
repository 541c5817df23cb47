#include "../head.h"
void deep(void) { __dtrace_probe_app___go(2); }
