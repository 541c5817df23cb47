/* libgcc: https://sourceware.org/gdb/current/onlinedocs/gdb.html/SVR4-Dynamic-Linker-Interface.html has others of the kind */
provider libgcc {
	probe unwind(void *frame, void *handler);
};
