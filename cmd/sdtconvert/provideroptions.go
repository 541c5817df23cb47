package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/output"
)

// providerFlags are the flags of provider, which are those of dtrace(1): parsed by
// parseProviderOptions.
var providerFlags = []*option{
	{head: "-h", help: "make a header: FILE.h, if there is no -o"},
	{head: "-G", help: "make an object: FILE.o, if there is no -o, which -G replaces only if it has made it; OBJECTs and archives determine the machine, and stay unchanged, except for FreeBSD and illumos: there calls of stubs in them are disabled, in place, and the object describes them"},
	{head: "-s FILE.d", help: "the provider file; may be repeated"},
	{head: "-o OUT", help: "write to OUT"},
	{head: "-C", help: "run the preprocessor of a C compiler on the file"},
	{head: "-D NAME[=VALUE], -U NAME, -I DIR", help: "for -C: define a macro, undefine one, a directory of headers"},
	{head: "-H", help: "for -C: list the headers that are read"},
	{head: "-x cpppath=PROGRAM", help: "for -C: run PROGRAM"},
	{head: "-x stubs", help: "with -h: macros that call stubs, which sdtconvert disables and records as any others"},
	{head: "--target TRIPLET", help: "the system, and with -G and no OBJECT the machine"},
	{head: "-32, -64, -m32, -m64", help: "with -G and no OBJECT: the machine, instead of that of CC, or of the host"},
	{head: "--sysroot DIR", help: "with -G for FreeBSD or illumos: the directory with usr/lib/dtrace/drti.o, which registers a program's probes when it starts"},
	{head: "--drti OBJECT", help: "this code instead"},
	{head: "-x lazyload", help: "leave that code out"},
	{head: "-x strict", help: "fail if there is nothing to register"},
	{head: "-q, -w", help: "do not print warnings"},
	{head: "-V, --version, --help", help: "show the version, or this"},
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
	groups: []group{{options: providerFlags}},
	after: `Other flags that builds give to dtrace -h and dtrace -G are accepted and have no
effect: -x nolibs and such, -Z, -k, -v, -fPIC, --types, --no-pyparsing. With
-D STAP_SDT_V2 other modules see the semaphores, and the object has to be linked.

Environment:
    CC, CFLAGS              with -G and no OBJECT: the machine
    CPP, CC, CFLAGS         for -C: the preprocessor, or a compiler`,
	exit:     "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong, or the system is unknown.",
	ownFlags: true,
	new: func() invocation {
		return flagless(func(p *program, args []string) (bool, error) { return false, p.makeProvider(args, "") })
	},
}

// providerOptions are the command line of dtrace(1), as far as it makes files.
type providerOptions struct {
	header, object   bool
	help, version    bool
	preprocess       bool
	quiet            bool
	stubs            bool
	sources, objects []string
	output, target   string
	defaultOutput    bool // no -o was given
	drti, sysroot    string
	lazy, strict     bool
	system           provider.System
	machineFlags     []string // -32 and such, which compilers know as well
	arch             string   // the machine that -arch of macOS's dtrace names
	warnings         []error
	cpp              string   // the preprocessor, "" for that of the environment
	cppFlags         []string // of the preprocessor, as compilers know them
}

// Options of dtrace(1) and of SystemTap's script that go before a value, and those that do
// not. What an option means that is not handled by name is nothing.
const (
	valueOptions = "osDUIx"
	flagOptions  = "hGCHVqwZvk"

	// tracing are the options for what is not done here.
	tracing = "abceflmnpAFPSLBRTiX"
)

// ignored are flags that builds pass on from compilers, and those of SystemTap's script.
var ignored = []string{"-fPIC", "-fpic", "-fPIE", "-fpie", "--types", "--no-pyparsing"}

// parseProviderOptions reads a command line. Options and objects stand in any order.
func parseProviderOptions(args []string) (o *providerOptions, err error) {
	o = &providerOptions{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			o.objects = append(o.objects, args...)
			args = nil
		case !strings.HasPrefix(arg, "-") || arg == "-":
			o.objects = append(o.objects, arg)
		case slices.Contains(ignored, arg):
		case slices.Contains([]string{"-32", "-64", "-m32", "-m64"}, arg):
			o.machineFlags = append(o.machineFlags, "-m"+strings.TrimLeft(arg, "-m"))
		case arg == "-arch" && len(args) > 0:
			o.arch, args = args[0], args[1:]
		case strings.HasPrefix(arg, "--"):
			args, err = o.long(arg, args)
		default:
			args, err = o.short(arg, args)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.help || o.version {
		return o, nil
	}
	return o, o.check()
}

// long reads an option that begins with --.
func (o *providerOptions) long(arg string, args []string) ([]string, error) {
	name, value, joined := strings.Cut(arg, "=")
	switch name {
	case "--help":
		o.help = true
		return args, nil
	case "--version":
		o.version = true
		return args, nil
	}
	option, ok := map[string]struct {
		to   *string
		what string
	}{"--target": {&o.target, "a triplet"}, "--drti": {&o.drti, "an object"}, "--sysroot": {&o.sysroot, "a directory"}}[name]
	if !ok {
		return nil, usagef("unknown option %s", arg)
	}
	if !joined && len(args) > 0 {
		value, args = args[0], args[1:]
	}
	if *option.to = value; value == "" {
		return nil, usagef("%s takes %s", name, option.what)
	}
	return args, nil
}

// short reads an argument of options of one letter.
func (o *providerOptions) short(arg string, args []string) ([]string, error) {
	for i := 1; i < len(arg); i++ {
		c := arg[i]
		switch {
		case strings.IndexByte(valueOptions, c) >= 0:
			value := arg[i+1:]
			if value == "" {
				if len(args) == 0 {
					return nil, usagef("-%c takes a value", c)
				}
				value, args = args[0], args[1:]
			}
			return args, o.value(c, value)
		case strings.IndexByte(flagOptions, c) >= 0:
			o.flag(c)
		case strings.IndexByte(tracing, c) >= 0:
			return nil, usagef("-%c is for tracing, and nothing is traced here; use DTrace or another tracer", c)
		default:
			return nil, usagef("unknown option %s", arg)
		}
	}
	return args, nil
}

func (o *providerOptions) flag(c byte) {
	if c == 'H' {
		o.cppFlags = append(o.cppFlags, "-H")
	} else if to := map[byte]*bool{
		'h': &o.header, 'G': &o.object, 'C': &o.preprocess, 'V': &o.version, 'w': &o.quiet, 'q': &o.quiet,
	}[c]; to != nil {
		*to = true
	}
}

func (o *providerOptions) value(c byte, value string) error {
	switch c {
	case 'o':
		o.output = value
	case 's':
		o.sources = append(o.sources, value)
	case 'D', 'U', 'I':
		o.cppFlags = append(o.cppFlags, "-"+string(c)+value)
	case 'x':
		return o.extension(value)
	}
	return nil
}

// extension is an option of -x. Those of DTrace that make no difference here are known.
func (o *providerOptions) extension(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if to := map[string]*bool{
		"cpp": &o.preprocess, "stubs": &o.stubs, "lazyload": &o.lazy, "strict": &o.strict,
	}[name]; to != nil {
		*to = true
		return nil
	}
	switch name {
	case "cpphdrs":
		o.flag('H')
	case "cpppath":
		if o.cpp = value; value == "" {
			return usagef("-x cpppath takes the path of a preprocessor: -x cpppath=PATH")
		}
	case "define", "undef", "incdir":
		return o.value(map[string]byte{"define": 'D', "undef": 'U', "incdir": 'I'}[name], value)
	case "nolibs", "libdir", "linktype", "linkmode", "knodefs", "unodefs", "stdc", "strip", "tree", "verbose", "zdefs":
	default:
		o.warnings = append(o.warnings, fmt.Errorf("-x %s is not known, and has no effect", name))
	}
	return nil
}

// form is what the macros of a header do.
func (o *providerOptions) form() output.HeaderForm {
	switch {
	case o.stubs:
		return output.StubsHeader
	case o.system.DOF():
		return output.CallsHeader
	case o.shared():
		return output.SharedHeader
	}
	return output.NotesHeader
}

// shared reports whether semaphores are seen by other modules, as SystemTap's macro asks.
func (o *providerOptions) shared() bool {
	return slices.ContainsFunc(o.cppFlags, func(flag string) bool {
		name, _, _ := strings.Cut(flag, "=")
		return name == "-DSTAP_SDT_V2"
	})
}

// class is the last flag that chooses the size of addresses, "" for none.
func (o *providerOptions) class() string {
	if len(o.machineFlags) == 0 {
		return ""
	}
	return o.machineFlags[len(o.machineFlags)-1]
}

// check checks a command line, and completes it.
func (o *providerOptions) check() error {
	switch {
	case o.header && o.object:
		return usagef("-h and -G exclude each other")
	case !o.header && !o.object:
		return usagef("-h makes a header and -G an object, and neither is given")
	case len(o.sources) == 0:
		return usagef("-s is missing: it names a provider file")
	case o.header && len(o.objects) > 0:
		return usagef("-h takes no objects: %s", o.objects[0])
	case o.object && o.arch != "": // headers are the same for all machines
		return usagef("-arch %s is for the dtrace of macOS; name the machine of the object with --target", o.arch)
	case o.object && o.stubs:
		return usagef("-x stubs is for -h: stubs need no object but what sdtconvert makes")
	case len(o.sources) > 1 && o.output == "":
		return usagef("-o is missing: it names the output of several files")
	case slices.Contains(o.sources, ""):
		return usagef("a provider file has no name")
	}
	if o.output == "" {
		o.defaultOutput = true
		base := filepath.Base(o.sources[0])
		o.output = strings.TrimSuffix(base, filepath.Ext(base)) + map[bool]string{true: ".h", false: ".o"}[o.header]
	}
	return checkOutput(o.output)
}
