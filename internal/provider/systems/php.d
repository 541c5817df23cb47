/* PHP: https://www.php.net/manual/en/features.dtrace.dtrace.php; with USE_ZEND_DTRACE=1 in the environment. A class that is caught is a zend_string */
provider php {
	probe compile__file__entry(const char *file, const char *translated);
	probe compile__file__return(const char *file, const char *translated);
	probe error(const char *message, const char *file, int line);
	probe exception__caught(void *class);
	probe exception__thrown(const char *class);
	probe execute__entry(const char *file, int line);
	probe execute__return(const char *file, int line);
	probe function__entry(const char *function, const char *file, int line, const char *class, const char *scope);
	probe function__return(const char *function, const char *file, int line, const char *class, const char *scope);
	probe request__startup(const char *file, const char *uri, const char *method);
	probe request__shutdown(const char *file, const char *uri, const char *method);
};
