#include "head.h"
void dots(void) { __dtrace_probe_app___go(3); }
