package ld

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// lld generates the code of link-time optimisation in memory. If probes are in it, lld runs first
// for that code alone, and writes it to files, which it gets instead of its bitcode in the link
// proper. The files have no names but those under which lld opens them: they begin with codePath.
// GCC's plugin, and LLVM's for other linkers, write files that the linker opens in the link proper.
const codePath = "/sdtconvert-code"

// generatedCode takes the place of the files that lld generates code of.
type generatedCode struct {
	descriptors map[*servedFile]int
	empty       int // descriptor of an archive without members, for a file that is read again
}

// needsGeneratedCode reports whether lld has to generate code first.
func (p runPlan) needsGeneratedCode(e *examiner) bool {
	return e.isLLD && p.conversion.contains(func(f *servedFile) bool { return f.lldGeneratesCode() && f.callsStubs })
}

// argumentsForCode returns the arguments with which lld links, and writes the code. Calls of stubs are undefined
// in that link, which is an error where they are hidden unless lld is told to go on; the link proper repeats the
// other errors. Probe objects are kept for records that are yet to come.
func (l *link) argumentsForCode() []string {
	return append(l.args[:len(l.args):len(l.args)], "-o", "/dev/null", "--lto-obj-path="+codePath, "--lto-partitions=1", "--thinlto-cache-dir=",
		"--unresolved-symbols=ignore-all", "--noinhibit-exec", "--no-fatal-warnings", "--export-dynamic-symbol="+l.Convert.Patch.ProbePrefix+"*")
}

// codeFiles are the files of code that lld writes.
type codeFiles struct {
	mu          sync.Mutex
	descriptors map[string]int // by path
}

// answer answers an open for writing: with a new file, if it is for code.
func (c *codeFiles) answer(o *supervise.Open) {
	if !strings.HasPrefix(o.Path, codePath) {
		o.Continue()
		return
	}
	fd, err := newDescriptor(nil)
	if err != nil {
		o.Fail(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.descriptors[o.Path]; ok {
		closeDescriptor(earlier)
	}
	c.descriptors[o.Path] = fd
	o.Give(fd)
}

// generate runs lld for the code, and converts that. It returns the plan of the link proper, where the code
// takes the place of the files that it was generated of. If the status of the result is not zero, or the run was
// stopped, the link ends with it.
func (l *link) generate(p runPlan, c *fileConverter) (runPlan, runResult, error) {
	s, err := supervise.New(supervise.Options{Writes: true})
	if err != nil {
		return p, runResult{}, err
	}
	var messages bytes.Buffer
	cmd := l.command(l.argumentsForCode())
	cmd.Stdout, cmd.Stderr = &messages, &messages
	code := &codeFiles{descriptors: map[string]int{}}
	first := p
	first.output = output{} // the run has none
	r, err := l.superviseCommand(first, c, s, cmd, code)
	if err == nil && r.status != (process.Status{}) {
		l.Stderr.Write(messages.Bytes())
		if r.status.Signal == nil {
			err = fmt.Errorf("%s: fails to generate the code of link-time optimisation for conversion: exit status %d; compile what has probes with -fno-lto", l.linker.path, r.status.Code)
		}
	}
	if err != nil || r.status.Signal != nil {
		return p, r, err
	}
	p.conversion = p.conversion.withFiles(r.found...)
	p.before = r
	p, err = l.withCode(p, c, code.descriptors)
	return p, r, err
}

// withCode converts code. Each file of it takes the place of one of the files that it was generated of. Those
// that are left become empty.
func (l *link) withCode(p runPlan, c *fileConverter, code map[string]int) (runPlan, error) {
	c.closeLater(slices.Collect(maps.Values(code))...)
	var objects []*distinctFile
	var originals []int
	for _, path := range slices.SortedFunc(maps.Keys(code), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) {
		fd := code[path]
		in := c.examiner.examine(descriptorPath(fd), p.output.path+".lto"+strings.TrimPrefix(path, codePath)+".o")
		if in.format == input.ELFFile && hasContents(descriptorPath(fd)) { // LLVM makes files where a part has no code, too
			objects, originals = append(objects, &distinctFile{inputFile: in, isNamed: true}), append(originals, fd)
		}
	}
	var replaced []*servedFile
	for _, f := range p.conversion.files {
		if f.lldGeneratesCode() {
			replaced = append(replaced, f)
		}
	}
	if len(objects) == 0 || len(objects) > len(replaced) {
		return p, fmt.Errorf("%s: generates %d objects of %d for link-time optimisation; compile what has probes with -fno-lto", l.linker.path, len(objects), len(replaced))
	}
	converted, err := c.convertAll(objects)
	if err != nil {
		return p, err
	}
	empty, err := newDescriptor([]byte(emptyArchive))
	if err != nil {
		return p, err
	}
	c.closeLater(empty)
	p.code = generatedCode{map[*servedFile]int{}, empty}
	for i, f := range replaced {
		switch {
		case i >= len(objects):
			p.code.descriptors[f] = empty
		case converted.files[i].isConverted:
			p.code.descriptors[f] = converted.files[i].descriptor
		default:
			p.code.descriptors[f] = originals[i]
		}
	}
	p.conversion.files = slices.Concat(p.conversion.files, converted.files)
	p.before.opened = maps.Clone(p.before.opened)
	for _, f := range converted.files {
		p.before.opened[f] = true
	}
	return p, nil
}

// hasContents reports whether an object has a section that is loaded and not empty.
func hasContents(path string) (loaded bool) {
	err := withImage(path, func(o *input.Object) error {
		loaded = slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 })
		return nil
	})
	return err == nil && loaded
}
