/* Runs locals.c. */
extern const char __start_sdt_instances_set[] __attribute__((weak));
extern const char __start_sdt_isenabled_set[] __attribute__((weak));
const char *locals_records[] = { __start_sdt_instances_set, __start_sdt_isenabled_set };

void locals_first(int a);
void locals_second(int a);
void locals_third(int a);
int locals_fourth(int a);

int main(void)
{
	locals_first(1);
	locals_second(2);
	locals_third(3);
	return locals_fourth(4);
}
