package main

// providerFlags are the flags of provider, which are those of dtrace(1): parsed by
// parseProviderOptions.
var providerFlags = []*option{
	{head: "-h", help: "make a header: FILE.h, if there is no -o",
		manual: "Make a header with two macros for each probe: one that fires it, and one,\n" +
			"`_ENABLED()`, that is true while it is traced.\n" +
			`The header needs no other.
Its probes are NOPs with notes like those of --stapsdt, and the same tracers find
them; semaphores are defined where they are used.
For FreeBSD and illumos the macros call stubs, as those of dtrace(1) do.`},
	{head: "-G", help: "make an object: FILE.o, if there is no -o, which -G replaces only if it has made it; OBJECTs and archives determine the machine, and stay unchanged, except for FreeBSD and illumos: there calls of stubs in them are disabled, in place, and the object describes them",
		manual: `Make an object that defines the semaphores, for builds that want one.
Objects and archives that are given determine the machine, and stay unchanged.
For FreeBSD and illumos the object describes the sites in the objects and
archives, and their types, to the kernel; calls of stubs there are disabled, in
place.
They keep their times, and may be given again.`},
	{head: "-s FILE.d", help: "the provider file; may be repeated",
		manual: "The provider file.\n" +
			"The output is `file.h` or `file.o` in the current directory, unless there is -o.\n" +
			"Without it, an existing `file.o` is replaced only if -G has written it."},
	{head: "-o OUT", help: "write to OUT", manual: `The output.`},
	{head: "-C", help: "run the preprocessor of a C compiler on the file",
		manual: `Run the preprocessor of a C compiler on the file: $CPP, $CC with -E, or an
installed one.
Without a compiler this is an error.
The predefined macros are those of the target.`},
	{head: "-D NAME[=VALUE], -U NAME, -I DIR", help: "for -C: define a macro, undefine one, a directory of headers",
		manual: "With -C, define a macro, undefine one, or search for headers in a directory.\n" +
			"`-x define=name`, `-x undef=name` and `-x incdir=dir` do the same."},
	{head: "-H", help: "for -C: list the headers that are read", manual: `With -C, list the headers that are read.`},
	{head: "-x cpppath=PROGRAM", help: "for -C: run PROGRAM", manual: `Run {program} for -C.`},
	{head: "-x stubs", help: "with -h: macros that call stubs, which sdtconvert disables and records as any others",
		manual: `Make a header whose macros call stubs, for sdtconvert *convert*.`},
	{head: "--target TRIPLET", help: "the system, and with -G and no OBJECT the machine",
		manual: `The system, instead of that in the program's name, of objects, or of the host;
and the machine of an object if no other object determines it.`},
	{head: "-32, -64, -m32, -m64", help: "with -G and no OBJECT: the machine, instead of that of CC, or of the host",
		manual: `The machine of an object if no other object determines it: otherwise it is that of
the triplet in the program's name, of $CC and $CFLAGS, or of the host.`},
	{head: "--sysroot DIR", help: "with -G for FreeBSD or illumos: the directory with usr/lib/dtrace/drti.o, which registers a program's probes when it starts",
		manual: "The tree of FreeBSD or illumos with `usr/lib/dtrace/drti.o`, the code that registers\n" +
			"the probes when a program starts, instead of that in $CC or $CFLAGS, or the host's."},
	{head: "--drti OBJECT", help: "this code instead", manual: `This code instead.`},
	{head: "-x lazyload", help: "leave that code out", manual: `Leave that code out: something else registers the probes.`},
	{head: "-x strict", help: "fail if there is nothing to register",
		manual: `Fail if there is nothing to register with the kernel of FreeBSD or illumos.`},
	{head: "-q, -w", help: "do not print warnings", manual: `Print no warnings.`},
	{head: "-V, --version, --help", help: "show the version, or this", manual: `Show the version, or help.`},
}

// providerCommand makes headers and objects of provider files.
var providerCommand = &command{
	name: "provider", synopsis: "provider -h|-G -s FILE.d...", brief: "make the header or the object of a provider file, as dtrace does",
	usage: []string{
		"sdtconvert provider -h -s FILE.d [-o OUT.h] [flags]",
		"sdtconvert provider -G -s FILE.d [-o OUT.o] [flags] [OBJECT...]",
		"dtrace ..., TRIPLET-dtrace ...",
	},
	text: `Makes from a provider file the header with the macros of its probes, or the object
that a link needs for them, for Linux, FreeBSD and illumos. It takes the command
line of dtrace, in any order, also under that name.`,
	groups: []group{{manual: "provider", options: providerFlags}},
	after: func() string {
		return `Other flags that builds give to dtrace -h and dtrace -G are accepted and have no
effect: -x nolibs and such, -Z, -k, -v, -fPIC, --types, --no-pyparsing. With
-D STAP_SDT_V2 other modules see the semaphores, and the object has to be linked.

Environment:
    CC, CFLAGS              with -G and no OBJECT: the machine
    CPP, CC, CFLAGS         for -C: the preprocessor, or a compiler`
	},
	exit:     "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong, or the system is unknown.",
	ownFlags: true,
	run: func(p *program, _ *flags, args []string) (bool, error) {
		return false, p.makeProvider(args, "")
	},
}
