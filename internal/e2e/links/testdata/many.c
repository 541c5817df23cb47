/* The stub, or the probe object, of the program with very many sections. */
#ifdef STUB
__attribute__((visibility("hidden"))) void __dtrace_probe_many(void)
{
}
#else
char sdt_many[96] = { 96 };
extern const char __start_sdt_instances_set[] __attribute__((weak));
const char *many_records = __start_sdt_instances_set;
#endif
