/* The probe objects that no macro makes. */
char sdt_app___idle[8] __attribute__((aligned(8)));
char sdt_plain___declared[8] __attribute__((aligned(8)));
char sdt_plain___file[8] __attribute__((aligned(8)));
char sdt_plain___wide[8] __attribute__((aligned(8)));
char sdt_plain___wide__tail[8] __attribute__((aligned(8)));
char sdt_plain__text___end__of__line[8] __attribute__((aligned(8)));
