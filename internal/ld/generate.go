package ld

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
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
	inputs      map[string]int // descriptors of objects that a script names, by path
	empty       int            // descriptor of an object without contents, for a file whose code has another place
	extracted   []string       // native files that the link proper has to extract, sorted; as lld calls them
}

// codeReport has what lld does with archives and bitcode in the link proper. Resolution there differs from that of a
// link of bitcode in rare cases, and a program that is another one is worse than none.
type codeReport struct {
	stdout      io.Writer    // of the link
	extractions bytes.Buffer // what --why-extract prints, from its head on
	unfinished  []byte       // of what was printed, a line without its end
	code        codeFiles    // that lld writes, if it generates code again
}

// newCodeReport returns an empty report, and has the linker write to it.
func newCodeReport(cmd *exec.Cmd) *codeReport {
	report := &codeReport{stdout: cmd.Stdout, code: codeFiles{descriptors: map[string]int{}}}
	cmd.Stdout = report
	cmd.Args = append(cmd.Args, "--why-extract=-", "--lto-obj-path="+codePath)
	return report
}

// Write passes on what the linker prints, but for the head of the extractions and the lines of these behind it. A write may end
// anywhere in a line.
func (r *codeReport) Write(b []byte) (int, error) {
	r.unfinished = append(r.unfinished, b...)
	end := bytes.LastIndexByte(r.unfinished, '\n') + 1
	for line := range bytes.Lines(r.unfinished[:end]) {
		if err := r.writeLine(line); err != nil {
			return 0, err
		}
	}
	r.unfinished = append(r.unfinished[:0], r.unfinished[end:]...)
	return len(b), nil
}

// writeLine keeps the line of an extraction, and passes on any other.
func (r *codeReport) writeLine(line []byte) error {
	isHead := string(line) == extractionHead
	if isHead || r.extractions.Len() > 0 && bytes.Count(line, []byte{'\t'}) == 2 {
		r.extractions.Write(line)
		return nil
	}
	_, err := r.stdout.Write(line)
	return err
}

// finish passes on the last line if it has no end.
func (r *codeReport) finish() error {
	_, err := r.stdout.Write(r.unfinished)
	return err
}

// check fails if lld has generated code again, or has extracted other files than it has for the bitcode.
func (r *codeReport) check(want []string) error {
	const cure = "; compile what has probes, or the libraries, with -fno-lto"
	for _, fd := range r.code.descriptors { // some are of looks whether the file can be written
		if hasContents(descriptorPath(fd)) {
			return errors.New("bitcode of archives would be in the output twice" + cure)
		}
	}
	native, err := nativeExtractions(parseExtractions(r.extractions.String()))
	if err != nil {
		return err
	}
	got := extractedFiles(native)
	for _, name := range slices.Concat(want, got) {
		if slices.Contains(want, name) != slices.Contains(got, name) {
			return fmt.Errorf("%s would be linked or left out other than with the bitcode%s", name, cure)
		}
	}
	return nil
}

// nativeExtractions returns the extractions of files that lld has generated no code of.
func nativeExtractions(extractions []extraction) (native []extraction, err error) {
	for _, x := range extractions {
		generated, err := x.isGenerated()
		if err != nil {
			return nil, err
		}
		if !generated {
			native = append(native, x)
		}
	}
	return native, nil
}

// extractedFiles returns the names of the files, sorted.
func extractedFiles(extractions []extraction) (names []string) {
	for _, x := range extractions {
		names = append(names, x.file)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// needsGeneratedCode reports whether lld has to generate code first.
func (p runPlan) needsGeneratedCode(e *examiner) bool {
	return e.linker == lld && p.conversion.contains(func(f *servedFile) bool { return f.lldGeneratesCode() && f.callsStubs || f.generatesProbes })
}

// argumentsForCode returns the arguments with which lld links, and writes the code. Calls of stubs are undefined
// in that link, which is an error where they are hidden unless lld is told to go on; the link proper repeats the
// other errors. Probe objects are kept for records that are yet to come. Standard output gets what is extracted
// of archives, and why.
func (l *link) argumentsForCode() []string {
	return append(l.args[:len(l.args):len(l.args)], "-o", "/dev/null", "--lto-obj-path="+codePath, "--lto-partitions=1", "--thinlto-cache-dir=",
		"--why-extract=-", "--no-demangle", "--unresolved-symbols=ignore-all", "--noinhibit-exec", "--no-fatal-warnings", "--export-dynamic-symbol="+l.Convert.Patch.ProbePrefix+"*")
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
	var extracts, messages bytes.Buffer
	cmd := l.command(l.argumentsForCode())
	cmd.Stdout, cmd.Stderr = &extracts, &messages
	code := &codeFiles{descriptors: map[string]int{}}
	first := p
	first.output = output{} // the run has none
	r, err := l.superviseCommand(first, c, s, cmd, code)
	if err == nil && r.status != (process.Status{}) {
		l.Stderr.Write(append(extracts.Bytes(), messages.Bytes()...))
		if r.status.Signal == nil {
			err = fmt.Errorf("%s: fails to generate the code of link-time optimisation for conversion: exit status %d; compile what has probes with -fno-lto", l.linker.path, r.status.Code)
		}
	}
	if err != nil || r.status.Signal != nil {
		return p, r, err
	}
	p.conversion = p.conversion.withFiles(r.found...)
	p.before = r
	p, err = l.withCode(p, c, code.descriptors, parseExtractions(extracts.String()))
	return p, r, err
}

// extraction is a file that lld has extracted of an archive, or taken from between --start-lib and --end-lib.
type extraction struct {
	file   string // as lld calls it: a path, or archive(member)
	symbol string // that was undefined
}

// extractionHead begins what --why-extract prints.
const extractionHead = "reference\textracted\tsymbol\n"

// parseExtractions reads what --why-extract prints: a line of a head, and then reference, file and symbol with tabs between.
func parseExtractions(text string) (extractions []extraction) {
	for line := range strings.Lines(text) {
		if fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(fields) == 3 && line != extractionHead {
			extractions = append(extractions, extraction{fields[1], fields[2]})
		}
	}
	return extractions
}

// isGenerated reports whether lld has generated code of an extracted file.
func (x extraction) isGenerated() (generated bool, err error) {
	path, member := x.file, ""
	if rest, ok := strings.CutSuffix(x.file, ")"); ok {
		if at := strings.LastIndexByte(rest, '('); at > 0 {
			path, member = rest[:at], rest[at+1:]
		}
	}
	err = input.Each(path, input.Options{FollowThin: true}, func(src *input.Source) error {
		if member != "" && (src.Member == nil || filepath.Base(src.Member.Name) != filepath.Base(member)) {
			return nil
		}
		typ, err := src.Type()
		generated = generated || typ == input.BitcodeFile
		return err
	})
	return generated, err
}

// withReferences returns a copy of an object of code, as a descriptor, that refers to the native files that lld has extracted for the bitcode. Without
// the references that optimisation has removed, the link proper would leave these files out, with their constructors and with
// what they define in place of weak definitions.
func withReferences(path string, native []extraction) (fd int, err error) {
	err = withImage(path, func(o *input.Object) error {
		e, err := o.Edit()
		if err != nil {
			return err
		}
		syms, err := o.Symbols()
		if err != nil {
			return err
		}
		for _, x := range native {
			isKnown := false
			for range syms.Named(x.symbol) {
				isKnown = true
				break
			}
			if !isKnown {
				e.AddSymbol(elfreloc.Symbol{Name: x.symbol, Bind: elf.STB_GLOBAL})
			}
		}
		fd, err = editedDescriptor(e)
		return err
	})
	return fd, err
}

// emptyObject returns a descriptor of an object without contents that is linked with another one.
func emptyObject(other string) (fd int, err error) {
	err = withImage(other, func(o *input.Object) error {
		empty, err := o.Empty("")
		if err != nil {
			return err
		}
		e, err := empty.Edit()
		if err != nil {
			return err
		}
		fd, err = editedDescriptor(e)
		return err
	})
	return fd, err
}

// editedDescriptor returns a descriptor of an edited object.
func editedDescriptor(e *elfreloc.Edit) (fd int, err error) {
	data, err := emit.EditedFile(e)
	if err != nil {
		return -1, err
	}
	return newDescriptor(data)
}

// withCode converts code. Each file of it takes the place of one of the files that it was generated of. Those
// that are left become empty. If there are more, as of members of archives, the last place gets a script that names them.
func (l *link) withCode(p runPlan, c *fileConverter, code map[string]int, extractions []extraction) (runPlan, error) {
	c.closeLater(slices.Collect(maps.Values(code))...)
	native, err := nativeExtractions(extractions)
	if err != nil {
		return p, err
	}
	objects, fds, err := codeObjects(c, code, p.output.path, native)
	if err != nil {
		return p, err
	}
	places, others := p.placesOfCode(extractions)
	if len(objects) == 0 && len(places) == 0 {
		return p, nil // nothing refers to the bitcode
	}
	if len(objects) == 0 {
		return p, fmt.Errorf("%s: generates no object for link-time optimisation of %s; compile what has probes with -fno-lto",
			l.linker.path, message.Plural(len(places)+len(others), "file"))
	}
	converted, err := c.convertAll(objects)
	if err != nil {
		return p, err
	}
	for i, f := range converted.files {
		if f.isConverted {
			fds[i] = f.descriptor
		}
	}
	if len(places) == 0 {
		places, others = others, nil
	}
	if err := p.checkPlaces(l.args, places); err != nil {
		return p, err
	}
	if p.code, err = placeCode(c, fds, places, others); err != nil {
		return p, err
	}
	p.code.extracted = extractedFiles(native)
	p.conversion.files = slices.Concat(p.conversion.files, converted.files)
	p.before.opened = maps.Clone(p.before.opened)
	for _, f := range converted.files {
		p.before.opened[f] = true
	}
	return p, nil
}

// codeObjects returns the files of code that hold any, in the order of their numbers, with their descriptors. The first refers to the
// native files that lld has extracted.
func codeObjects(c *fileConverter, code map[string]int, output string, native []extraction) (objects []*servedFile, fds []int, err error) {
	byNumber := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	for _, path := range slices.SortedFunc(maps.Keys(code), byNumber) {
		fd := code[path]
		if !hasContents(descriptorPath(fd)) { // LLVM makes files where a part has no code, too
			continue
		}
		if len(objects) == 0 && len(native) > 0 {
			if fd, err = withReferences(descriptorPath(fd), native); err != nil {
				return nil, nil, err
			}
			c.closeLater(fd)
		}
		in := c.examiner.examine(inputFile{path: descriptorPath(fd), name: output + ".lto" + strings.TrimPrefix(path, codePath) + ".o"})
		if in.format == input.ELFFile {
			objects, fds = append(objects, &servedFile{inputFile: in, isSurelyRead: true}), append(fds, fd)
		}
	}
	return objects, fds, nil
}

// placeCode says what takes the place of each file that code was generated of. fds are of the code.
func placeCode(c *fileConverter, fds []int, places, others []*servedFile) (generatedCode, error) {
	empty, err := emptyObject(descriptorPath(fds[0]))
	if err != nil {
		return generatedCode{}, err
	}
	c.closeLater(empty)
	code := generatedCode{descriptors: map[*servedFile]int{}, inputs: map[string]int{}, empty: empty}
	if last := len(places) - 1; len(fds) > len(places) {
		script := &bytes.Buffer{}
		for i, fd := range fds[last:] {
			path := fmt.Sprintf("%s.%d.o", codePath, i)
			code.inputs[path] = fd
			fmt.Fprintf(script, "INPUT(\"%s\")\n", path)
		}
		fd, err := newDescriptor(script.Bytes())
		if err != nil {
			return code, err
		}
		c.closeLater(fd)
		fds = append(fds[:last:last], fd)
	}
	for i, f := range slices.Concat(places, others) {
		code.descriptors[f] = empty
		if i < len(fds) {
			code.descriptors[f] = fds[i]
		}
	}
	return code, nil
}

// placesOfCode returns the files that lld generates code of: those that it links wherever they are, and the others, which it links if
// something refers to them, and may leave out once that is optimised away.
func (p runPlan) placesOfCode(extractions []extraction) (places, others []*servedFile) {
	lazy := map[*servedFile]bool{}
	for _, x := range extractions {
		if id, ok := supervise.Identify(x.file); ok {
			lazy[p.conversion.byIdentity[id]] = true
		}
	}
	for _, f := range p.conversion.files {
		switch {
		case !f.lldGeneratesCode():
		case f.isOptional, lazy[f]:
			others = append(others, f)
		default:
			places = append(places, f)
		}
	}
	return places, others
}

// checkPlaces fails if the code of archives has no place in the link proper: it takes that of bitcode on the command line, and lld
// must not link the members again.
func (p runPlan) checkPlaces(args []string, places []*servedFile) error {
	for _, f := range p.conversion.files {
		switch {
		case !f.generatesProbes || !f.isArchive():
		case len(places) == 0:
			return fmt.Errorf("%s: holds probes in link-time optimisation code, and no object on the command line is such code, whose place its code could take; "+
				"compile the library with -fno-lto, or an object with -flto", f.name)
		case slices.Contains(args, "--whole-archive"):
			return fmt.Errorf("%s: holds probes in link-time optimisation code, and would be linked twice with --whole-archive; compile the library with -fno-lto", f.name)
		}
	}
	return nil
}

// hasContents reports whether an object has a section that is loaded and not empty.
func hasContents(path string) (loaded bool) {
	err := withImage(path, func(o *input.Object) error {
		loaded = slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 })
		return nil
	})
	return err == nil && loaded
}
