int dynamic(void) { return K; }
int which(void) { return 10000 + K; }
