/* GLib: https://docs.gtk.org/glib/ (glib.stp) */
provider glib {
	probe mem__alloc(void *memory, unsigned int bytes, unsigned int zeroed, unsigned int failable);
	probe mem__free(void *memory);
	probe mem__realloc(void *memory, void *before, unsigned int bytes, unsigned int failable);
	probe slice__alloc(void *memory, unsigned int bytes);
	probe slice__free(void *memory, unsigned int bytes);
	probe quark__new(const char *text, unsigned int quark);
	probe timeout__add(void *source, void *context, unsigned int id, int priority, unsigned int interval, void *function, void *data);
	probe idle__add(void *source, void *context, unsigned int id, int priority, void *function, void *data);
	probe thread__spawned(void *function, void *data, const char *name);
};
provider gobject {
	probe type__new(const char *name, unsigned long parent, unsigned long type);
	probe object__new(void *object, unsigned long type);
	probe object__ref(void *object, unsigned long type, unsigned int before);
	probe object__unref(void *object, unsigned long type, unsigned int before);
	probe object__dispose(void *object, unsigned long type, unsigned int run);
	probe object__dispose__end(void *object, unsigned long type, unsigned int run);
	probe object__finalize(void *object, unsigned long type);
	probe object__finalize__end(void *object, unsigned long type);
	probe signal__new(unsigned int signal, const char *name, unsigned long type);
	probe signal__emit(unsigned int signal, unsigned int detail, void *object, unsigned long type);
	probe signal__emit__end(unsigned int signal, unsigned int detail, void *object, unsigned long type);
};
