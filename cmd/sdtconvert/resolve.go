package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
)

// The flags of resolve and list.
var (
	demangleOption = &option{name: "demangle",
		help: "write the names of C++ and Rust as in the source"}
	inlinesOption = &option{name: "inlines",
		help: "show the chain of inlined functions of each site or address"}
	resolvePIDOption = &option{name: "pid", letter: "p", value: "PID",
		help: "resolve addresses of a process (Linux)"}
	resolveJSONOption = &option{name: "json",
		help: "print JSON"}
)

// resolveCommand shows where addresses are.
var resolveCommand = &command{
	name: "resolve", synopsis: "resolve IMAGE ADDRESS...", brief: "show where addresses are",
	usage: []string{"sdtconvert resolve [flags] IMAGE [ADDRESS...]", "sdtconvert resolve [flags] --pid PID [ADDRESS...]"},
	text: `Shows where hexadecimal addresses are: in a linked image at the addresses that it
was linked for, in a running process (Linux) at those of its memory, and in an
object as SECTION+OFFSET. Without an address they are read from standard input,
one a line.

For each it prints, separated by tabs: the address, the file, the offset in the
file, the load base, function+offset, and the source line; - is what is not known.`,
	groups: []group{
		{options: []*option{resolvePIDOption, resolveJSONOption}},
		{options: []*option{demangleOption, inlinesOption}},
	},
	exit: "0 success, 1 an address is not in code, or something was wrong with a file, 2 the command line is wrong.",
	new:  func() invocation { return &resolveFlags{} },
}

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	set   *flagSet
	json  bool
	pid   int
	shown locate.Options
}

func (f *resolveFlags) bindFlags(s *flagSet) {
	f.set = s
	s.bind("json", &f.json)
	s.bind("pid", &f.pid)
	s.bind("demangle", &f.shown.Demangle)
	s.bind("inlines", &f.shown.Inlines)
}

// run shows where addresses are.
func (f *resolveFlags) run(p *program, args []string) (failed bool, err error) {
	o := f.shown
	o.Lines, o.Warn = true, func(err error) { message.Warning(p.Stderr, err) }
	var space *locate.Space
	switch {
	case f.set.Changed("pid") && f.pid <= 0:
		return false, usagef("--pid %d is not a process", f.pid)
	case f.set.Changed("pid"):
		space, err = locate.OpenProcess(f.pid, o)
	case len(args) == 0:
		return false, usagef("no image is given")
	default:
		space, err = locate.OpenFile(args[0], o)
		args = args[1:]
	}
	if err != nil {
		return false, err
	}
	defer space.Close()
	out := &resolvePrinter{w: bufio.NewWriterSize(p.Stdout, 64<<10), json: f.json, before: documentHead}
	err = eachAddress(args, p.Stdin, func(text string) error {
		a, err := locate.Find(space, text)
		if err != nil {
			failed = true
			message.Error(p.Stderr, err)
		}
		return out.print(a)
	})
	return failed, errors.Join(err, out.close())
}

// eachAddress calls f with every address: of the command line, or else of the lines of
// standard input. What stands behind an address in its line is passed over, and
// so is the number of a frame before it (#3), so that stack traces can be piped
// in.
func eachAddress(addresses []string, stdin io.Reader, f func(text string) error) error {
	for _, text := range addresses {
		if err := f(text); err != nil {
			return err
		}
	}
	if len(addresses) > 0 || stdin == nil {
		return nil
	}
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && strings.HasPrefix(fields[0], "#") {
			fields = fields[1:]
		}
		if len(fields) == 0 {
			continue
		}
		if err := f(fields[0]); err != nil {
			return err
		}
	}
	return lines.Err()
}

// resolvePrinter prints one line for each address, or one JSON document. It
// holds none of them: there may be a million.
type resolvePrinter struct {
	w      *bufio.Writer
	json   bool
	before string // what stands before the next element of the document
}

// What begins the document, and what separates its elements.
const (
	documentHead      = "{\"version\": 1, \"addresses\": [\n"
	documentSeparator = ",\n"
)

func (p *resolvePrinter) print(a *locate.Address) error {
	if p.json {
		data, err := json.Marshal(a)
		if err != nil {
			return err
		}
		p.w.WriteString(p.before)
		p.before = documentSeparator
		_, err = p.w.Write(message.EscapeJSON(data))
		return err
	}
	columns := []string{a.Address, a.Object, a.FileOffset, a.Base, "", a.Source}
	if a.Function != "" {
		columns[4] = a.Place.String()
	}
	for i, c := range columns {
		columns[i] = message.Escape(message.OrDash(c))
	}
	p.w.WriteString(strings.Join(columns, "\t"))
	err := p.w.WriteByte('\n')
	for _, f := range a.Inlines {
		p.w.WriteString("\tinline\t" + message.Escape(f.Function) + "\t" + message.Escape(message.OrDash(f.Source)))
		err = p.w.WriteByte('\n')
	}
	return err
}

func (p *resolvePrinter) close() error {
	if p.json {
		p.w.WriteString(strings.TrimPrefix(p.before, documentSeparator) + "\n]}\n")
	}
	return p.w.Flush()
}
