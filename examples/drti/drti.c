/*
 * Registers the probes of a program, or of a library, with a kernel that has DTrace, when
 * it is loaded: for FreeBSD and illumos, where no drti.o of the system is at hand. On
 * Linux it registers them with the daemon of DTrace for Linux, which knows the format of
 * illumos; DRTI_FREEBSD makes the calls of FreeBSD there, for tests.
 *
 *	cc -O2 -fPIC -c drti.c
 *	sdtconvert provider -G -s shop.d --drti drti.o -o provider.o objects
 *
 * The object of -G has a copy, with what it registers. DTRACE_DOF_INIT_DISABLE keeps it
 * from doing anything, DTRACE_DOF_INIT_DEBUG has it tell what came of it, and
 * DTRACE_DOF_INIT_DEVNAME names another device than /dev/dtrace/helper.
 */
#define _GNU_SOURCE 1
#include <sys/types.h>
#include <sys/ioctl.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__FreeBSD__) || defined(DRTI_FREEBSD)
#define FREEBSD 1
#endif

/* What is registered: -G defines it. */
extern const unsigned char __SUNW_dof[] __attribute__((visibility("hidden")));

/* dof_helper_t of <sys/dtrace.h>, and what is done with it. */
struct helper {
	char module[64];
	uint64_t base; /* of the module; 0 for what is not moved when it is loaded */
	uint64_t dof;
#ifdef FREEBSD
	int32_t pid;
	int32_t generation;
#endif
};
#if defined(__sun)
#ifdef _LP64
typedef Elf64_Ehdr header;
#else
typedef Elf32_Ehdr header;
#endif
#define ADD 0x64746803    /* DTRACEHIOC_ADDDOF */
#define REMOVE 0x64746802 /* DTRACEHIOC_REMOVE */
#elif defined(FREEBSD)
#define ADD 0xc0587a03    /* _IOWR('z', 3, dof_helper_t) */
#define REMOVE 0x80047a02 /* _IOW('z', 2, int) */
#else
#define ADD _IOW(0xd8, 3, struct helper)
#define REMOVE _IOW(0xd8, 2, int)
#endif

static int generation = -1; /* what the kernel knows it by; -1 for nothing */

static int
open_helper(void)
{
	const char *name = getenv("DTRACE_DOF_INIT_DEVNAME");

	if (name != NULL)
		return (open(name, O_RDWR));
	return (open("/dev/dtrace/helper", O_RDWR));
}

static void
tell(const char *what, const char *module)
{
	int error = errno;

	if (getenv("DTRACE_DOF_INIT_DEBUG") != NULL)
		fprintf(stderr, "drti: %s: %s: %s\n", module, what, error == 0 ? "done" : strerror(error));
}

/* What loaders call the program itself may be "". */
static const char *
program(void)
{
#if defined(__linux__)
	return (program_invocation_short_name);
#elif defined(__sun)
	return (getexecname());
#else
	return (getprogname());
#endif
}

/* The module that the format is in. */
static int
find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct helper *h = arg;
	const char *path, *name;
	int i;

	(void) size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || (uintptr_t) __SUNW_dof - start >= info->dlpi_phdr[i].p_memsz)
			continue;
		path = info->dlpi_name != NULL && *info->dlpi_name != '\0' ? info->dlpi_name : program();
		name = strrchr(path, '/');
		snprintf(h->module, sizeof h->module, "%s", name != NULL ? name + 1 : path);
		h->base = info->dlpi_addr;
#ifdef __sun
		/* Here this is the first address of a program that is not moved, too. */
		if (((const header *) info->dlpi_addr)->e_type != ET_DYN)
			h->base = 0;
#endif
		return (1);
	}
	return (0);
}

static void add(void) __attribute__((constructor));
static void withdraw(void) __attribute__((destructor));

static void
add(void)
{
	struct helper h;
	int fd, result;

	if (getenv("DTRACE_DOF_INIT_DISABLE") != NULL || memcmp(__SUNW_dof, "\177DOF", 4) != 0)
		return;
	memset(&h, 0, sizeof h);
	if (dl_iterate_phdr(find, &h) == 0)
		return;
	h.dof = (uintptr_t) __SUNW_dof;
#ifdef FREEBSD
	h.pid = getpid();
#endif
	if ((fd = open_helper()) < 0) {
		tell("the device does not open", h.module);
		return;
	}
	errno = 0;
	result = ioctl(fd, ADD, &h);
	tell("add", h.module);
	close(fd);
	if (result == -1)
		return;
#ifdef FREEBSD
	generation = h.generation;
#else
	generation = result;
#endif
}

static void
withdraw(void)
{
	int fd;

	if (generation == -1 || (fd = open_helper()) < 0)
		return;
	errno = 0;
#ifdef FREEBSD
	ioctl(fd, REMOVE, &generation);
#else
	ioctl(fd, REMOVE, generation);
#endif
	tell("remove", "");
	close(fd);
}
