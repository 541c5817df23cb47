/* QEMU: https://www.qemu.org/docs/master/devel/tracing.html; of hundreds, those with texts that versions share */
provider qemu {
	probe handle_qmp_command(void *monitor, const char *request);
	probe monitor_qmp_respond(void *monitor, const char *response);
	probe monitor_qmp_cmd_in_band(const char *id);
	probe monitor_qmp_cmd_out_of_band(const char *id);
	probe vm_state_notify(int running, int reason, const char *text);
	probe runstate_set(int before, const char *before_text, int state, const char *state_text);
	probe bdrv_open_common(void *state, const char *file, int flags, const char *format);
	probe memory_region_ops_read(int processor, void *region, uint64_t address, uint64_t value, unsigned int bytes, const char *name);
	probe memory_region_ops_write(int processor, void *region, uint64_t address, uint64_t value, unsigned int bytes, const char *name);
};
