/* Node.js up to 18: https://nodejs.org/download/release/latest-v18.x/docs/api/ */
provider node {
	probe net__server__connection(void *connection, const char *address, int port, int descriptor);
	probe net__stream__end(void *connection, const char *address, int port, int descriptor);
	probe http__server__request(void *request, void *connection, const char *address, int port, const char *method, const char *url, int descriptor);
	probe http__server__response(void *connection, const char *address, int port, int descriptor);
	probe http__client__request(void *request, void *connection, const char *address, int port, const char *method, const char *url, int descriptor);
	probe http__client__response(void *connection, const char *address, int port, int descriptor);
	probe gc__start(int type, int flags, void *isolate);
	probe gc__done(int type, int flags, void *isolate);
};
