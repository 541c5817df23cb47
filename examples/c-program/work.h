#ifndef WORK_H
#define WORK_H

#ifdef __cplusplus
extern "C"
#endif
long work(long cost);

#endif
