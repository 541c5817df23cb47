package ld

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sdtconvert/internal/input"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// What the environment says of the linker.
const (
	envLinker = "SDTCONVERT_LD"    // which it is
	envDepth  = "SDTCONVERT_DEPTH" // how many wrappers run each other

	// envCompiler are the directories in which GCC's driver looks for what it runs. One for
	// another machine has a linker of its own there.
	envCompiler = "COMPILER_PATH"
)

// maxDepth is how often wrappers may run each other: a compiler that a plugin of
// the linker runs may link. More means that one finds a copy of itself.
const maxDepth = 8

// family is what linkers that do the same have in common.
type family string

const (
	gnu  family = "ld" // also any other: GNU ld has no name of its own
	gold family = "gold"
	lld  family = "lld"
	mold family = "mold"
)

// familyOf returns the family of a linker, whose file, or what a link leads to, has it in its name.
func familyOf(path string) family {
	names := filepath.Base(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		names += " " + filepath.Base(real)
	}
	for _, f := range []family{gold, lld, mold} {
		if strings.Contains(names, string(f)) {
			return f
		}
	}
	return gnu
}

// linker is the real linker.
type linker struct {
	family
	path    string
	environ []string // that it gets
}

// mayAddInputs reports whether the linker is no ELF file. A script may add inputs to the line, as those of Nix and Spack do.
func (l linker) mayAddInputs() bool {
	f, err := input.Open(l.path)
	if err != nil {
		return true
	}
	defer f.Close()
	typ, err := f.Source().Type()
	return err != nil || typ != input.ELFFile
}

// findReal finds the linker to run: the one that is named, or the next of the name
// that is not this program, where the compiler would find it or along PATH.
func findReal(p *process.Process, flag, name string) (linker, error) {
	depth, _ := strconv.Atoi(p.Getenv(envDepth))
	if depth >= maxDepth {
		return linker{}, fmt.Errorf("%s: leads to sdtconvert itself; name the real linker with %s or --linker", name, envLinker)
	}
	path, err := linkerPath(p, flag, name)
	return linker{familyOf(path), path, p.EnvironWith(envDepth, strconv.Itoa(depth+1))}, err
}

func linkerPath(p *process.Process, flag, name string) (string, error) {
	wanted, from := flag, "--linker"
	if wanted == "" {
		wanted, from = p.Getenv(envLinker), envLinker
	}
	if wanted == "" {
		for _, directories := range []string{p.Getenv(envCompiler), compilerDirectory(os.Getppid()), p.Getenv("PATH")} {
			if path, err := findIn(name, directories); err == nil {
				return path, nil
			}
		}
		return "", fmt.Errorf("%s: no linker of this name along PATH but this program; install it, or name it with %s or --linker", name, envLinker)
	}
	if filepath.Base(wanted) != wanted {
		if _, err := exec.LookPath(wanted); err != nil {
			return "", fmt.Errorf("%s: %w", from, err)
		}
		return wanted, nil
	}
	path, err := findIn(wanted, p.Getenv("PATH"))
	if err != nil {
		err = fmt.Errorf("%s: no %s along PATH; install it", from, wanted)
	}
	return path, err
}

// compilerDirectory returns the directory of a process's program if that is clang or flang, which look
// there for a linker before they look along PATH; "" otherwise.
func compilerDirectory(pid int) string {
	path, err := supervise.Executable(pid)
	if name := filepath.Base(path); err != nil || !strings.Contains(name, "clang") && !strings.Contains(name, "flang") {
		return ""
	}
	return paths.Directory(path)
}

// findIn looks in a list of directories, past what is this program.
func findIn(name, directories string) (string, error) {
	for _, directory := range filepath.SplitList(directories) {
		if directory == "" {
			directory = "."
		}
		path := paths.Join(directory, name)
		if !filepath.IsAbs(path) {
			path = paths.Join(".", path)
		}
		if found, err := exec.LookPath(path); err == nil && !isSelf(found) {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}

func isSelf(path string) bool {
	executable, err := process.Executable()
	if err != nil {
		return false
	}
	return sameFile(executable, path)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errors.Join(errA, errB) == nil && os.SameFile(infoA, infoB)
}

// command returns a run of the linker.
func (l linker) command(words []string) *exec.Cmd {
	cmd := exec.Command(l.path, words...)
	cmd.Args[0], cmd.Env = l.path, l.environ
	return cmd
}

// linkerName matches the names of linkers: with the target before it, and a version or a variant behind it. GCC's programs for intermediate
// code, lto1 and lto-wrapper, read it at the places where the linker has found it.
var linkerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*[-.])?(ld|ld32|ld64|lld|gold|mold|wild|collect2)([-.].*|[0-9]*)$|^lto`)
})

// isLinkerProcess reports whether a process is a linker, by the name of its program. What others read under the link is their own: tools
// that a linker's script runs, and assemblers, which include data (.incbin).
func isLinkerProcess(pid int) (bool, error) {
	path, err := supervise.Executable(pid)
	return linkerName().MatchString(filepath.Base(path)), err
}
