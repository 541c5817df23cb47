package ld

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// lld generates the code of link-time optimisation in memory. If probes are in it, lld runs first
// for that code alone, and writes it to files, which it gets instead of its bitcode in the link
// proper. The files have no names but those under which lld opens them: they begin with codePath.
// GCC's plugin, and LLVM's for other linkers, write files that the linker opens in the link proper.
const codePath = "/sdtconvert-code"

// wordsOfFirstRun have lld link, and write the code. Calls of stubs are undefined in that link, which
// is an error where they are hidden unless it is told to go on; the link proper repeats the others.
// Probe objects are kept for records that are yet to come.
func (r *run) wordsOfFirstRun() []string {
	return append(r.args[:len(r.args):len(r.args)], "-o", "/dev/null", "--lto-obj-path="+codePath, "--lto-partitions=1", "--thinlto-cache-dir=",
		"--unresolved-symbols=ignore-all", "--noinhibit-exec", "--no-fatal-warnings", "--export-dynamic-symbol="+r.Convert.Patch.ProbePrefix+"*")
}

// isGenerated reports whether lld generates code of a file.
func (in *linkInput) isGenerated() bool {
	return in.lto.Compiler == lto.LLVM && (in.typ == filetype.Bitcode || in.isObject())
}

// needsFirstRun reports whether lld has to generate code first.
func (r *run) needsFirstRun() bool {
	return r.inputs.examiner.lld && slices.ContainsFunc(r.inputs.order, func(f *servedFile) bool { return f.in.isGenerated() && f.in.probes })
}

// codeFiles are the files that lld has written.
type codeFiles struct {
	mu    sync.Mutex
	paths []string
	fds   map[string]int
}

// give answers an open for writing with a new file.
func (c *codeFiles) give(o *supervise.Open) {
	fd, err := newDescriptor(nil)
	if err != nil {
		o.Fail(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fds[o.Path] == 0 {
		c.paths = append(c.paths, o.Path)
	} else {
		closeDescriptor(c.fds[o.Path])
	}
	c.fds[o.Path] = fd
	o.Give(fd)
}

// generate runs lld for the code, converts it, and has it take the place of the bitcode. A status
// that is not zero is lld's end.
func (r *run) generate() (process.Status, error) {
	code := &codeFiles{fds: map[string]int{}}
	var messages bytes.Buffer
	cmd := r.command(r.wordsOfFirstRun())
	cmd.Stdout, cmd.Stderr = &messages, &messages
	s, err := supervise.New(supervise.Options{Writes: true})
	if err != nil {
		return process.Status{}, err
	}
	status, err := r.supervised(s, cmd, func(o *supervise.Open) {
		switch {
		case o.Write && strings.HasPrefix(o.Path, codePath):
			code.give(o)
		case o.Write:
			o.Continue()
		default:
			r.answer(o)
		}
	})
	if err == nil && status != (process.Status{}) {
		r.Stderr.Write(messages.Bytes())
		if status.Signal == nil {
			err = fmt.Errorf("%s: fails to generate the code of link-time optimisation for conversion: exit status %d; compile what has probes with -fno-lto", r.linker.path, status.Code)
		}
	}
	if err != nil || status.Signal != nil {
		return status, err
	}
	return status, r.takeGenerated(code)
}

// takeGenerated converts code, and has each file of it take the place of one of those that it was
// generated of. The others are empty.
func (r *run) takeGenerated(code *codeFiles) error {
	slices.SortFunc(code.paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var objects []*servedFile
	var fds []int
	for _, path := range code.paths {
		fd := code.fds[path]
		name := output(r.line) + ".lto" + strings.TrimPrefix(path, codePath) + ".o"
		f := &servedFile{ready: make(chan struct{}), in: r.inputs.examiner.examine(descriptorPath(fd), name), isOnLine: true, fd: -1}
		f.opened.Store(true)
		if f.in.typ == filetype.ELF && hasContents(descriptorPath(fd)) { // LLVM makes files where a part has no code, too
			objects, fds = append(objects, f), append(fds, fd)
		}
	}
	var places []*servedFile
	for _, f := range r.inputs.order {
		if f.in.isGenerated() {
			places = append(places, f)
		}
	}
	if len(objects) == 0 || len(objects) > len(places) {
		return fmt.Errorf("%s: generates %d objects of %d for link-time optimisation; compile what has probes with -fno-lto", r.linker.path, len(objects), len(places))
	}
	r.inputs.order = append(r.inputs.order, objects...)
	if r.inputs.convertFiles(objects) {
		return errReported
	}
	var err error
	if r.empty, err = newDescriptor([]byte(emptyArchive)); err != nil {
		return err
	}
	r.generated, r.placed = map[*servedFile]int{}, map[*servedFile]bool{}
	for i, f := range places {
		switch {
		case i >= len(objects):
			r.generated[f] = r.empty
		case objects[i].converted:
			r.generated[f] = objects[i].fd
		default:
			r.generated[f] = fds[i]
		}
	}
	return nil
}

// hasContents reports whether an object has anything that is loaded.
func hasContents(path string) (loaded bool) {
	err := withImage(path, func(o *input.Object) error {
		loaded = slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 })
		return nil
	})
	return err == nil && loaded
}
