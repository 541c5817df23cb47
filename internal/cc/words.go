package cc

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/process"
	"sdtconvert/internal/responsefile"
)

// compilerName matches the names of compilers: with the machine that they compile for, and
// their version. Words before such a name belong to programs that run the compiler.
var compilerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|gfortran|gdc|gnat|icx|icpx|tcc|as|ldc2|ldmd2|dmd)(-[0-9.]+)?(\.exe)?$`)
})

// Names of compilers whose flags for outputs are other ones: ldc2 and dmd, and assemblers.
var (
	compilesD = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(ldc2|ldmd2|dmd)(-[0-9.]+)?(\.exe)?$`) })
	assembles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.*-)?as(-[0-9.]+)?(\.exe)?$`) })
)

// outputs returns the paths that a command line has the compiler write objects to, or nil
// if it stops before there are objects, or links them.
func outputs(words []string) []string {
	at := compilerAt(words)
	found := outputsOf(words[at], words[at+1:], "")
	if at == 0 {
		return found
	}
	// The first word may be a compiler of another name, and this one the value of a flag.
	for _, path := range outputsOf(words[0], words[1:], words[at]) {
		if !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	return found
}

// outputsOf returns the same for a program and its arguments. compiler may be another word
// among them that names one, or "": then words that do not look like sources are none.
func outputsOf(program string, words []string, compiler string) []string {
	args, err := responsefile.Expand(words)
	if err != nil {
		return nil // the compiler complains of it too
	}
	c := commandLine{isD: compilesD().MatchString(filepath.Base(program))}
	c.read(args)
	switch {
	case c.stops:
		return nil
	case c.output != "" && (c.compiles || filepath.Ext(c.output) == ".o"):
		return []string{c.in(c.output)} // without -c, an assembler writes it, or ld -r
	case c.output == "" && assembles().MatchString(filepath.Base(program)):
		return []string{"a.out"}
	case !c.compiles || c.output != "":
		return nil
	}
	var objects []string
	for _, source := range c.sources {
		isWord := compiler != "" && (source == compiler || filepath.Ext(source) == "" || strings.Contains(source, "="))
		if !isWord && !isLinked(source) {
			objects = append(objects, c.in(paths.Join(c.objects, objectOf(source))))
		}
	}
	return objects
}

// programsOf returns the path that a command line has the compiler write to what it links, or none if it stops before, or links
// through the wrapper.
func programsOf(words []string) []string {
	at := compilerAt(words)
	args, err := responsefile.Expand(words[at+1:])
	if err != nil || linksThroughWrapper(words) {
		return nil
	}
	c := commandLine{isD: compilesD().MatchString(filepath.Base(words[at]))}
	c.read(args)
	if c.stops || c.compiles || len(c.sources) == 0 {
		return nil
	}
	return []string{c.in(cmp.Or(c.output, "a.out"))}
}

// changesFormat reports whether a command line may have the linker write another format than ELF: by --oformat, or by a linker script.
func changesFormat(words []string) bool {
	args, err := responsefile.Expand(words)
	return err == nil && slices.ContainsFunc(args, func(word string) bool {
		return strings.Contains(word, "oformat") || strings.HasPrefix(word, "-T") || strings.HasPrefix(word, "-Wl,-T") || strings.Contains(word, "-script")
	})
}

// objectOf returns the name of the object of a source.
func objectOf(source string) string {
	base := filepath.Base(source)
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".o"
}

// isLinked reports whether a file is for the linker, so that there is no object of it.
func isLinked(path string) bool {
	return slices.Contains([]string{".o", ".a", ".so"}, filepath.Ext(path))
}

// linksThroughWrapper reports whether the flags of a compiler have it find the linker wrapper, a
// link named ld to this program: then the link converts what a compilation leaves.
func linksThroughWrapper(words []string) bool {
	path, err := process.Executable()
	if err != nil {
		return false
	}
	program, err := os.Stat(path)
	if err != nil {
		return false
	}
	for i, word := range words {
		directory, isFlag := strings.CutPrefix(word, "-B")
		if isFlag && directory == "" && i+1 < len(words) {
			directory = words[i+1]
		}
		if !isFlag {
			continue
		}
		if wrapper, err := os.Stat(paths.Join(directory, "ld")); err == nil && os.SameFile(wrapper, program) {
			return true
		}
	}
	return false
}

// compilerAt returns the index of the word that names the compiler, or 0.
func compilerAt(words []string) int {
	for i, word := range words {
		if !strings.HasPrefix(word, "-") && compilerName().MatchString(filepath.Base(word)) {
			return i
		}
	}
	return 0
}

// commandLine is what arguments of a compiler say about objects.
type commandLine struct {
	isD       bool // the flags are those of a compiler of D
	compiles  bool // to objects, and does not link them
	stops     bool // before there are objects
	output    string
	directory string // that paths are relative to, or ""
	objects   string // the directory of objects without a path of their own, or ""
	sources   []string
}

// in returns a path as this program opens it.
func (c *commandLine) in(path string) string {
	if c.directory == "" || filepath.IsAbs(path) {
		return path
	}
	return paths.Join(c.directory, path)
}

func (c *commandLine) read(args []string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			c.sources = append(c.sources, args[i+1:]...)
			break
		}
		if word == "-" || !strings.HasPrefix(word, "-") {
			c.sources = append(c.sources, word)
			continue
		}
		value := ""
		if !takesNext(word) {
			word, value = c.cutValue(word)
		} else if i++; i < len(args) {
			value = args[i]
		}
		c.take(word, value)
	}
}

// take takes in a flag with its value.
func (c *commandLine) take(flag, value string) {
	switch flag {
	case "-c", "--compile":
		c.compiles = true
	case "-E", "--preprocess", "-S", "--assemble", "-M", "--dependencies", "-MM", "--user-dependencies", "-###":
		c.stops = true
	case "-o", "--output":
		c.output = value
	case "-working-directory":
		c.directory = value
	case "-od":
		c.objects = value
	}
}

// cutValue divides a word into a flag of take and its value, "" if it has none.
func (c *commandLine) cutValue(word string) (flag, value string) {
	if c.isD {
		return cutValueD(word)
	}
	for _, flag := range []string{"--output", "-working-directory"} {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return flag, value
		}
	}
	if value, ok := strings.CutPrefix(word, "-o"); ok && word != "-object" && !strings.HasPrefix(word, "-objcmt-") { // other flags of clang
		return "-o", value
	}
	return word, ""
}

// cutValueD does so for a compiler of D, which takes -of=x.o and -ofx.o for -o x.o.
func cutValueD(word string) (flag, value string) {
	word = "-" + strings.TrimLeft(word, "-")
	for prefix, flag := range map[string]string{"-of": "-o", "-od": "-od"} {
		if value, ok := strings.CutPrefix(word, prefix); ok {
			return flag, strings.TrimPrefix(value, "=")
		}
	}
	return word, ""
}

// takesNext reports whether the next word is the value of a flag.
func takesNext(word string) bool {
	return slices.Contains(strings.Fields(separateFlags), word) || strings.HasPrefix(word, "-Xarch_") || strings.HasPrefix(word, "-Xopenmp-target=") || strings.HasPrefix(word, "-Xoffload-linker")
}

// separateFlags are the flags of gcc and clang whose value may be, or has to be, the next
// word.
const separateFlags = `
-A -B -D -F -G -Hd -Hf -I -J -L -MF -MJ -MQ -MT -R -T -Tbss -Tdata -Ttext -U -V -Xanalyzer -Xassembler -Xclang
-Xcuda-fatbinary -Xcuda-ptxas -Xf -Xlinker -Xopenmp-target -Xpreprocessor -arch -arcmt-migrate-report-output -aux-info
-b -ccc-arcmt-migrate -ccc-gcc-name -ccc-install-dir -ccc-objcmt-migrate -cxx-isystem -dependency-dot -dependency-file
-dsym-dir -dumpbase -dumpbase-ext -dumpdir -e -fintrinsic-modules-path -fmodules-user-build-path -framework
-gen-cdb-fragment-path -gnatO -h -iapinotes-modules -idirafter -iframework -iframeworkwithsysroot -imacros -imultilib
-include -include-pch -iprefix -iquote -isysroot -isystem -isystem-after -ivfsoverlay -iwithprefix -iwithprefixbefore
-iwithsysroot -l -mllvm -mmlir -module-dependency-dir -mthread-model -o -resource-dir -rpath
-serialize-diagnostics -specs -stdlib++-isystem -target -u -undefined -vfsoverlay -working-directory -wrapper -x -z
--analyzer-output --assert --config --define-macro --dump --dumpbase --dumpbase-ext --dumpdir --entry --for-assembler
--for-linker --force-link --imacros --include --include-directory --include-directory-after --include-prefix
--include-with-prefix --include-with-prefix-after --include-with-prefix-before --language --library-directory --output
--output-pch= --param --prefix --serialize-diagnostics --specs --sysroot --undefine-macro --vfsoverlay
`
