#include "head.h"
void space(void) { __dtrace_probe_app___go(4); }
