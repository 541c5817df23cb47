/* What a kernel without tests has in their place. */
#define	SDT_PROBE_ENABLED(prov, mod, func, name)	(0)
