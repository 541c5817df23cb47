package preprocess

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/responsefile"
)

// Target is what a file is preprocessed for.
type Target struct {
	Triplet string          // "" where nothing names one
	System  provider.System // if HasSystem
	// HasSystem is false where the system is one without probes.
	HasSystem bool
	ABI       elfreloc.ABI // the zero value if the machine makes no difference
}

// compiler is a command that preprocesses.
type compiler struct {
	words   []string
	flags   []string // that make it one for the target
	foreign bool     // it is for another target, and its macros are undefined
}

// ErrNone says that there is no compiler.
var ErrNone = errors.New("-C needs a C compiler, and found none: install one, or name it with CC, CPP or -x cpppath")

// ownNames are the compilers that are looked for where nothing names one.
var ownNames = []string{"cc", "gcc", "clang", "cpp"}

// compiler finds the compiler for the target: the one that is named, or else one of the
// host's or of the target's triplet.
func (o *Options) compiler() (compiler, error) {
	candidates := [][]string{o.fromSettings()}
	if candidates[0] == nil {
		candidates = o.installed()
	}
	if len(candidates) == 0 {
		return compiler{}, ErrNone
	}
	triplets := make([]string, len(candidates))
	for i, words := range candidates {
		triplets[i] = o.ask(words)
		if flags, ok := o.fits(triplets[i]); ok {
			return compiler{words: words, flags: o.withSysroot(flags)}, nil
		}
	}
	if o.Target.Triplet != "" { // clang is a compiler for all targets
		for _, words := range candidates {
			flag := "--target=" + o.Target.Triplet
			if _, ok := o.fits(o.ask(append(slices.Clone(words), flag))); ok {
				return compiler{words: words, flags: o.withSysroot([]string{flag})}, nil
			}
		}
	}
	for _, words := range candidates {
		if flags, ok := o.undefine(words); ok {
			return compiler{words: words, flags: flags, foreign: true}, nil
		}
	}
	return compiler{}, fmt.Errorf("-C needs a C compiler for %s, and %s is one for %s; name one with CC or -x cpppath, or the target with --target",
		o.Target.name(), strings.Join(candidates[0], " "), triplets[0])
}

// fromSettings returns the compiler that the command line or the environment names, nil for none.
func (o *Options) fromSettings() []string {
	if o.Program != "" {
		return []string{o.Program}
	}
	if words := o.words("CPP"); len(words) > 0 {
		return words
	}
	words := o.words("CC")
	if len(words) == 0 {
		return nil
	}
	for _, flag := range responsefile.Split([]byte(o.Process.Getenv("CFLAGS"))) {
		if strings.HasPrefix(flag, "--target=") || strings.HasPrefix(flag, "--sysroot=") || flag == "-m32" || flag == "-m64" {
			words = append(words, flag)
		}
	}
	return words
}

// words returns the words of a variable, without flags that write dependencies: of p.d,
// compilers write these to p.d itself.
func (o *Options) words(variable string) (words []string) {
	fields := responsefile.Split([]byte(o.Process.Getenv(variable)))
	for i := 0; i < len(fields); i++ {
		switch word := fields[i]; {
		case word == "-MF", word == "-MT", word == "-MQ":
			i++ // its value
		case strings.HasPrefix(word, "-M"), strings.HasPrefix(word, "-Wp,-M"):
		default:
			words = append(words, fields[i])
		}
	}
	return words
}

// installed returns the compilers that are installed.
func (o *Options) installed() (compilers [][]string) {
	names := slices.Clone(ownNames)
	if t := o.Target.Triplet; t != "" {
		names = append(names, t+"-cc", t+"-gcc", t+"-clang")
	}
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			compilers = append(compilers, []string{name})
		}
	}
	return compilers
}

// Triplet asks a compiler what it makes objects for, "" if it does not say.
func (o *Options) Triplet(words []string) string {
	out, err := o.run(append(slices.Clone(words), "-dumpmachine"), "", io.Discard)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// ask is Triplet for what is one word.
func (o *Options) ask(words []string) string {
	triplet := o.Triplet(words)
	if len(strings.Fields(triplet)) != 1 {
		return ""
	}
	return triplet
}

// fits reports whether a compiler for a triplet is one for the target, with which flags. One
// that does not name its triplet is.
func (o *Options) fits(triplet string) (flags []string, ok bool) {
	if triplet == "" {
		return nil, true
	}
	system, err := provider.ParseSystem(triplet)
	if (err == nil) != o.Target.HasSystem || err == nil && system != o.Target.System {
		return nil, false
	}
	abi, ok := machines.Target(triplet)
	if !ok {
		return nil, true
	}
	class := abi.Class
	switch {
	case o.Class == "-m32":
		class = elf.ELFCLASS32
	case o.Class == "-m64":
		class = elf.ELFCLASS64
	case o.Target.ABI.Class != elf.ELFCLASSNONE:
		class = o.Target.ABI.Class
	}
	if class != abi.Class {
		if abi, ok = machines.OfClass(abi, class); !ok {
			return nil, false
		}
		flags = []string{map[elf.Class]string{elf.ELFCLASS32: "-m32", elf.ELFCLASS64: "-m64"}[class]}
	}
	t := o.Target.ABI
	return flags, t.Machine == elf.EM_NONE || t.Machine == abi.Machine && (t.Data == abi.Data || abi.Data == elf.ELFDATANONE) && (o.Class != "" || t.Class == abi.Class)
}

func (o *Options) withSysroot(flags []string) []string {
	if o.Sysroot != "" {
		flags = append(flags, "--sysroot="+o.Sysroot)
	}
	return flags
}

// name names a target in a message.
func (t Target) name() string {
	switch {
	case t.Triplet != "":
		return t.Triplet
	case t.ABI.Machine != elf.EM_NONE:
		return fmt.Sprintf("%v, %v of %v", t.System, t.ABI.Machine, t.ABI.Class)
	}
	return t.System.String()
}
