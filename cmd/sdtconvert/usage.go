package main

// usages holds the help on each command; "" is the program's own.
var usages = map[string]string{
	"": usageAll, "check": usageCheck, "convert": usageConvert, "inspect": usageInspect, "ld": usageLd, "list": usageList,
	"provider": usageProvider, "resolve": usageResolve, "sites": usageSites, "stubs": usageStubs, "version": usageVersion, "help": usageHelp,
}

const usageAll = `sdtconvert turns the calls of DTrace probe stubs in object files into no
operations, and records where they were.

Usage:
    sdtconvert [convert] [flags] FILE...    convert objects, in place
    sdtconvert ld [flags] -- ARGUMENT...    link, with what holds probes converted
    sdtconvert inspect [flags] FILE...      show the probe sites of objects
    sdtconvert check [flags] FILE...        find what is wrong with the probes of
                                            objects, and of what was linked
    sdtconvert list [flags] IMAGE...        list the probes of objects, archives,
                                            programs, libraries, kernels and
                                            processes
    sdtconvert resolve IMAGE ADDRESS...     show where addresses are
    sdtconvert stubs -o OUT FILE...         write what a link of objects lacks:
                                            probe objects and stubs
    sdtconvert sites --asm FILE...          write the records of objects that stay
                                            as they are, as assembly
    sdtconvert provider -h|-G -s FILE.d...  make the header or the object of a provider
                                            file, as dtrace does
    sdtconvert version, --version, -V       show the version
    sdtconvert help [COMMAND]               show this, or help on a command

Flags may precede the command. An argument @FILE stands for the arguments that FILE
holds.

Exit status: 0 all is well, 1 something was wrong with a file (it is left as it
was, and the others are done), 2 the command line is wrong and nothing was done, as
where the first word is neither a command nor a file; of check, 1 it has
found an error, 3 it could not look at a file.
`

const usageConvert = `Usage: sdtconvert [convert] [flags] FILE...
       sdtconvert --version | -V

Overwrites each call of a stub __dtrace_probe_<id> or __dtrace_isenabled_<id> in
relocatable objects with a no operation, and records the sites in a section that
the final link collects. Run it on objects after compiling and before linking. The
members of an archive are converted inside of it, and those of a thin archive where
they are.

Output:
    -o, --output OUT        write the one FILE's result to OUT instead
        --output-dir DIR    write every result to DIR, under the file's name
    -n, --dry-run           say what would be done, and write nothing
    -v, --verbose           print a line for each site
        --json              print a manifest of all sites in JSON
    -j, --jobs N            work on N files at once (default: one a processor)

What is converted:
        --follow-thin       files that a thin archive names outside of its folder, too
        --prefix P          stubs of probe calls begin with P, instead of
                            __dtrace_probe_; may be repeated
        --enabled-prefix P  stubs of is-enabled tests begin with P, instead of
                            __dtrace_isenabled_; may be repeated
        --symbol NAME       NAME is a stub too, of probe NAME; may be repeated
        --return-thunk[=SYMBOL]
                            jump to SYMBOL (default the machine's own, as gcc
                            names it) instead of returning; implied where an
                            object refers to that

What is recorded:
        --layout LAYOUT     pairs (default), relative or freebsd
        --section NAME      name of the section of records
        --probe-object-prefix P
                            probe objects are named P<id>, instead of sdt_<id>
        --no-records        only disable the sites
        --drop-relocations  delete the relocations of disabled sites, instead of
                            letting them keep the records alive
        --stapsdt           add notes too, by which gdb, perf, bpftrace, bcc and
                            SystemTap find the probes
        --semaphores WHICH  with --stapsdt, probes get a semaphore that tracers
                            raise if the object has is-enabled tests of them,
                            tested (default), or all
        --dtrace            add notes too, by which DTrace for Linux finds the sites
                            of probes that dtrace -G has told it of
        --prototypes FILE   declarations of stubs, for the arguments in notes of
                            probes whose types nothing else tells

Exit status: 0 all is well, 1 something was wrong with a file (it is left as it
was, and the others are done), 2 the command line is wrong.
`

const usageLd = `Usage: sdtconvert ld [flags] -- ARGUMENT...
       ld ARGUMENT...

Runs the linker with these arguments, with a converted copy in the place of each
input that holds probes. The copies are in a temporary folder, and go when the
link is done. In a final link it adds the probe objects that nothing defines.

Under the name of a linker (ld, ld.bfd, ld.lld, x86_64-linux-gnu-ld: a symbolic
link), it runs the next one of that name along PATH.

        --linker LINKER     the linker to run, instead of the next ld along PATH
        --in-place          convert the inputs themselves
        --no-stubs          do not add probe objects
        --no-undefined-probes
                            do not link with a probe that nothing defines where
                            a source defines others of its provider (a warning
                            otherwise)
    -v, --verbose           print a line for each site, to standard error
    -j, --jobs N            work on N files at once (default: one a processor)
        --prefix P, --enabled-prefix P, --symbol NAME, --return-thunk[=SYMBOL],
        --layout LAYOUT, --section NAME, --probe-object-prefix P, --no-records,
        --drop-relocations, --stapsdt, --semaphores WHICH, --dtrace,
        --prototypes FILE
                            as for convert

Environment:
    SDTCONVERT=off          only run the linker
    SDTCONVERT_LD           the linker to run
    SDTCONVERT_FLAGS        the flags above, under the name of a linker

Exit status: the linker's, also where a signal ends it; 1 something was wrong
with an input, and nothing was linked, 2 the command line is wrong.
`

const usageInspect = `Usage: sdtconvert inspect [flags] FILE...

Shows each probe site of objects and of the members of archives: where it is, its
kind and state, its probe, its relocation, and its instructions before and after
conversion.

        --json              print a manifest of all sites in JSON
    -j, --jobs N            work on N files at once (default: one a processor)
        --prefix P, --enabled-prefix P, --symbol NAME, --return-thunk[=SYMBOL],
        --layout LAYOUT, --section NAME, --probe-object-prefix P, --follow-thin
                            as for convert

Colour is used on a terminal unless NO_COLOR is set.

Exit status: 0 all is well, 1 something was wrong with a file, or it holds a
site that cannot be converted, 2 the command line is wrong.
`

const usageList = `Usage: sdtconvert list [flags] [PROBE...] IMAGE...
       sdtconvert list [flags] --pid PID [PROBE...]

Lists the probes that objects, archives, linked images or a running process have
records of, each with the function that holds its sites, as dtrace -l does.

    -v, --verbose           list every site too, with its address, function, kind,
                            state, source line and semaphore, and the types of
                            arguments
        --json              print the listing, with all sites, in JSON
        --pid PID           list what is loaded in a process (Linux)
        --follow-thin       open files that a thin archive names outside of its folder

Which probes; each value is a glob:
    -P, --provider GLOB     -m, --module GLOB
    -f, --function GLOB     -n, --name GLOB
    PROBE                   provider:module:function:name; parts on the left may
                            be missing, and an empty part matches anything

Where they are:
        --layout LAYOUT     only records in this layout: pairs, relative, freebsd
        --section NAME      the name of the section of records
        --probe-object-prefix P
                            probe objects are named P<id>, instead of sdt_<id>

What stubs are called, which tells live calls of them from disabled forms:
        --prefix P, --enabled-prefix P, --symbol NAME
                            as for convert

How functions are shown:
        --demangle          write the names of C++ and Rust as in the source
        --inlines           show the chain of inlined functions of each site

Exit status: 0 all is well, 1 something was wrong with an image or a record, or
no probe matches, 2 the command line is wrong.
`

const usageResolve = `Usage: sdtconvert resolve [flags] IMAGE [ADDRESS...]
       sdtconvert resolve [flags] --pid PID [ADDRESS...]

Shows where hexadecimal addresses are: in a linked image at the addresses that it
was linked for, in a running process (Linux) at those of its memory, and in an
object as SECTION+OFFSET. Without an address they are read from standard input,
one a line.

For each it prints, separated by tabs: the address, the file, the offset in the
file, the load base, function+offset, and the source line; - is what is not known.

        --pid PID           look into a process
        --json              print JSON
        --demangle          write the names of C++ and Rust as in the source
        --inlines           print a line for each inlined function too

Exit status: 0 all is well, 1 an address is not in code, or something was wrong
with a file, 2 the command line is wrong.
`

const usageCheck = `Usage: sdtconvert check [flags] FILE...

Finds what is wrong with the probes of a build: of its converted objects, which
are all to be those of one link, of programs, libraries and kernel modules, and of
these in comparison with what was converted. A site has a record, or a note alone,
as those of provider files.

What is wanted:
        --require PROBE     a site has to have this probe, provider:module:function:name
                            as for list; may be repeated
        --require @FILE     the same for each probe of FILE, one a line; a # begins a
                            comment
        --require-notes     each recorded site of a probe has to have a note, as
                            convert --stapsdt makes it
        --manifest FILE     what convert --json printed: all of these sites have to
                            be in the image, with their notes, unless the linker
                            dropped their functions; may be repeated
        --allow RULE        do not apply this rule; may be repeated
        --baseline FILE     findings that FILE has are known, and no fault
        --write-baseline FILE
                            write all that is found to FILE, which is no fault then

What is printed:
        --format FORMAT     text (default), json, sarif (2.1.0), or github, for
                            annotations of the lines

What is looked for:
        --prefix P, --enabled-prefix P, --symbol NAME,
        --section NAME, --probe-object-prefix P, --follow-thin
                            as for convert

Rules; those with * only say what is worth knowing:
    live-call           a stub is still called
    stub-address        a stub's address is taken, or it is called through a register
    refused-call        a stub is called in a way that has no disabled form
    lto-object          an object for link-time optimisation holds probes
    unanchored-site     no function holds a site
    unknown-site        the bytes of a site are no disabled form
    dangling-record     a record leads nowhere
    duplicate-record    a site has two records
    undefined-probe     a probe has no definition
    unresolved-probe *  a probe is defined in another file, which was not given
    unused-probe        a probe is defined and has no site
    leftover-probe *    a probe that was defined for its sites has none left
    duplicate-probe     a probe is defined twice
    argument-mismatch   calls and definition differ in the number of arguments
    mixed-layout        records of several layouts are in one link
    mixed-flags         objects of one link were converted differently
    missing-bounds      a FreeBSD kernel cannot find the records
    broken-note         a note of a probe cannot be read
    missing-note        a site has a record, and lacks the note that is wanted
    semaphore-mismatch  notes of one probe name different semaphores
    dead-guard          a guard tests a semaphore that no tracer raises
    semaphore-place     a semaphore is where the kernel cannot count in it
    semaphore-section * a semaphore is not in .probes
    early-semaphore *   a semaphore is lost that is raised before the program starts
    missing-probe       a required probe has no site
    lost-site           a site of the manifest is not in the image, though its function is
    dropped-site *      the function of a site of the manifest is not in the image

Exit status: 0 no error was found, 1 some was, 2 the command line is wrong, 3 a
file could not be looked at, whatever was found in others.
`

const usageStubs = `Usage: sdtconvert stubs -o OUT [flags] FILE...
       sdtconvert stubs --asm [-o OUT] [flags] FILE...

Writes the object that a link of these objects lacks: a probe object, with its
provider, for each probe that they use and none of them defines, and for those
that are linked without conversion, stubs that do nothing, or return 0. All
definitions are weak. Shared libraries among the files are asked what they define.

    -o, --output OUT        write to OUT; if it is one of the files, and was made
                            by this command, it is passed over
        --asm               write assembly, to standard output if there is no -o
        --prefix P, --enabled-prefix P, --symbol NAME, --return-thunk[=SYMBOL],
        --section NAME, --probe-object-prefix P, --follow-thin
                            as for convert

Exit status: 0 all is well, 1 something was wrong with a file, and nothing was
written, 2 the command line is wrong.
`

const usageSites = `Usage: sdtconvert sites --asm [-o OUT] [flags] FILE...

Writes the records that convert would make of these objects as assembly, and
leaves the objects alone: for kernels that patch their sites themselves. Give all
objects of a link. A record names its site by a global function of its section
and the distance from there; where that cannot be done, the site is refused.

        --asm               write assembly; there is no other form
    -o, --output OUT        write to OUT instead of standard output
        --prefix P, --enabled-prefix P, --symbol NAME,
        --layout LAYOUT, --section NAME, --probe-object-prefix P, --follow-thin
                            as for convert

Exit status: 0 all is well, 1 something was wrong with a file, and nothing was
written, 2 the command line is wrong.
`

const usageProvider = `Usage: sdtconvert provider -h -s FILE.d [-o OUT.h] [flags]
       sdtconvert provider -G -s FILE.d [-o OUT.o] [flags] [OBJECT...]
       dtrace ..., TRIPLET-dtrace ...

Makes of a provider file the header with the macros of its probes, or the object
that a link needs for them, for Linux, FreeBSD and illumos. It takes the command
line of dtrace, in any order, also under that name.

    -h                      make a header: FILE.h, if there is no -o
    -G                      make an object: FILE.o, if there is no -o, which then may
                            be no other object than one that -G has made; OBJECTs and
                            archives say for which machine, and stay as they are,
                            but for FreeBSD and illumos: there calls of stubs in
                            them are disabled, in place, and the object tells of them
    -s FILE.d               the provider file; may be repeated
    -o OUT                  write to OUT
    -C                      run the preprocessor of a C compiler on the file
    -D NAME[=VALUE], -U NAME, -I DIR
                            for -C: define a macro, undefine one, a folder of headers
    -H                      for -C: list the headers that are read
    -x cpppath=PROGRAM      for -C: run PROGRAM
    -x stubs                with -h: macros that call stubs, which sdtconvert
                            disables and records as any others
    --target TRIPLET        the system, and with -G and no OBJECT the machine
    -32, -64, -m32, -m64    with -G and no OBJECT: the machine, instead of that of
                            CC, or of the host
    --sysroot DIR           with -G for FreeBSD or illumos: where usr/lib/dtrace/drti.o
                            is, which registers a program's probes when it starts
    --drti OBJECT           such code, instead of that
    -x lazyload             leave that code out
    -x strict               fail where there is nothing to register
    -q, -w                  do not print warnings
    -V, --version, --help   show the version, or this

What else builds give to dtrace -h and dtrace -G is taken and makes no difference:
-x nolibs and such, -Z, -k, -v, -fPIC, --types, --no-pyparsing. With -D STAP_SDT_V2
other modules see the semaphores, and the object has to be linked.

Environment:
    CC, CFLAGS              with -G and no OBJECT: the machine
    CPP, CC, CFLAGS         for -C: the preprocessor, or a compiler

Exit status: 0 all is well, 1 something was wrong with a file, and nothing was
written, 2 the command line is wrong, or the system is not one that is known.
`

const usageVersion = `Usage: sdtconvert version
       sdtconvert --version | -V

Shows the version.
`

const usageHelp = `Usage: sdtconvert help [COMMAND]

Shows help on a command.
`
