/* For C and C++: the functions of a small program with probes. */
#include "sdt.h"

#ifdef __cplusplus
#define C extern "C"
#else
#define C
#endif

C int fire(int n);
C int stop(int n);
C int unused(int n);
