extern unsigned short app_hit_semaphore __attribute__((visibility("hidden")));

void hit(int n, long m);
int plain(char **argv);
