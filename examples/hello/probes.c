/* The probe objects that the records of hello.c point to. */
struct sdt_probe {
	const char *name;
};

struct sdt_probe sdt_hello___greet = { "hello:::greet" };
struct sdt_probe sdt_hello___done = { "hello:::done" };
