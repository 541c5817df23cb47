package main

// usages holds the help on each command; "" is the program's own.
var usages = map[string]string{"": usageAll, "convert": usageConvert, "inspect": usageInspect, "version": usageVersion, "help": usageHelp}

const usageAll = `sdtconvert turns the calls of DTrace probe stubs in object files into no
operations, and records where they were.

Usage:
    sdtconvert [convert] [flags] FILE...    convert objects, in place
    sdtconvert inspect [flags] FILE...      show the probe sites of objects
    sdtconvert version                      show the version
    sdtconvert help [COMMAND]               show this, or help on a command

An argument @FILE stands for the arguments that FILE holds.

Exit status: 0 all is well, 1 something was wrong with a file (it is left as it
was, and the others are done), 2 the command line is wrong.
`

const usageConvert = `Usage: sdtconvert [convert] [flags] FILE...

Overwrites each call of a stub __dtrace_probe_<id> or __dtrace_isenabled_<id> in
relocatable objects with a no operation, and records the sites in a section that
the final link collects. Run it on objects after compiling and before linking.

Output:
    -o, --output OUT        write the one FILE's result to OUT instead
        --output-dir DIR    write every result to DIR, under the file's name
    -n, --dry-run           say what would be done, and write nothing
    -v, --verbose           print a line for each site
        --json              print a manifest of all sites in JSON
    -j, --jobs N            work on N files at once (default: one a processor)

What is converted:
        --prefix P          stubs of probe calls begin with P, instead of
                            __dtrace_probe_; may be repeated
        --enabled-prefix P  stubs of is-enabled tests begin with P, instead of
                            __dtrace_isenabled_; may be repeated
        --symbol NAME       NAME is a stub too, of probe NAME; may be repeated
        --return-thunk[=SYMBOL]
                            jump to SYMBOL (default __x86_return_thunk) instead
                            of returning; implied where an object refers to it

What is recorded:
        --layout LAYOUT     pairs (default), relative or freebsd
        --section NAME      name of the section of records
        --probe-object-prefix P
                            probe objects are named P<id>, instead of sdt_<id>
        --no-records        only disable the sites
        --drop-relocations  delete the relocations of disabled sites, instead of
                            letting them keep the records alive

Exit status: 0 all is well, 1 something was wrong with a file (it is left as it
was, and the others are done), 2 the command line is wrong.
`

const usageInspect = `Usage: sdtconvert inspect [flags] FILE...

Shows each probe site of relocatable objects: where it is, its kind and state,
its probe, its relocation, and its instructions before and after conversion.

        --json              print a manifest of all sites in JSON
    -j, --jobs N            work on N files at once (default: one a processor)
        --prefix P, --enabled-prefix P, --symbol NAME, --return-thunk[=SYMBOL],
        --layout LAYOUT, --section NAME, --probe-object-prefix P
                            as for convert

Colour is used on a terminal unless NO_COLOR is set.

Exit status: 0 all is well, 1 something was wrong with a file, or it holds a
site that cannot be converted, 2 the command line is wrong.
`

const usageVersion = `Usage: sdtconvert version

Shows the version.
`

const usageHelp = `Usage: sdtconvert help [COMMAND]

Shows help on a command.
`
