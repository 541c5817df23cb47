/* -*- C -*- */
#ifdef _DTRACE_VERSION
#endif
typedef struct Tk_Obj Tk_Obj;
typedef const char* TkStr;

/* Probes of a language in a library. */
provider tk {
    /***************************** procedures ************/
    probe proc__entry(TkStr name, int objc, struct Tk_Obj **objv);
    probe proc__args(TkStr name, TkStr arg1, TkStr arg2, TkStr arg3, TkStr arg4, TkStr arg5, TkStr arg6, TkStr arg7, TkStr arg8, TkStr arg9);
    probe obj__create(struct Tk_Obj* obj);
    /* names of C's own */
    probe event(int errno, int class, int free, unsigned long long int id);
    probe tk__probe(TkStr arg0);
};

struct Tk_Obj {
    int refCount;
    char *bytes;
    union {
        long longValue;
        struct { void *ptr1; void *ptr2; } twoPtrValue;
        Tk_Obj *(*make)(int);
    } internalRep;
};
enum return_codes { OK = 0, ERROR };
