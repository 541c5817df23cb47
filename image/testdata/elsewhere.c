struct probe { long version; const char *name; };
struct probe sdt_elsewhere = { 98, "elsewhere" };
