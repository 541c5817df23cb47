package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
)

// resolveSettings are what the flags of resolve say.
type resolveSettings struct {
	locate.Options
	json      bool
	pid       int
	file      string // unless pid is given
	addresses []string
}

// resolve is the command that tells where addresses are.
func (p *program) resolve(args []string) (failed bool, err error) {
	s, err := parseResolve(args)
	if err != nil {
		return false, err
	}
	s.Warn = func(err error) { message.Warning(p.Stderr, err) }
	space, err := s.open()
	if err != nil {
		return false, err
	}
	defer space.Close()
	out := newResolvePrinter(p.Stdout, s.json)
	err = s.each(p.Stdin, func(text string) error {
		a, err := locate.Find(space, text)
		if err != nil {
			failed = true
			message.Error(p.Stderr, err)
		}
		return out.print(a)
	})
	return failed, errors.Join(err, out.close())
}

// resolveFlags defines the flags of resolve.
func resolveFlags() (*pflag.FlagSet, *resolveSettings) {
	s := &resolveSettings{Options: locate.Options{Lines: true}}
	f := newFlagSet("resolve")
	defineShown(f, &s.Options)
	f.BoolVar(&s.json, "json", false, "")
	f.IntVar(&s.pid, "pid", 0, "")
	return f, s
}

func parseResolve(args []string) (*resolveSettings, error) {
	f, s := resolveFlags()
	if err := parseFlags(f, args); err != nil {
		return nil, err
	}
	s.addresses = f.Args()
	if f.Changed("pid") {
		if s.pid <= 0 {
			return nil, usagef("--pid %d is no process", s.pid)
		}
		return s, nil
	}
	if len(s.addresses) == 0 {
		return nil, usagef("no image is given")
	}
	s.file, s.addresses = s.addresses[0], s.addresses[1:]
	return s, nil
}

func (s *resolveSettings) open() (locate.Space, error) {
	if s.pid != 0 {
		return locate.OpenProcess(s.pid, s.Options)
	}
	return locate.OpenFile(s.file, s.Options)
}

// each calls f with every address: of the command line, or else of the lines of
// standard input. What stands behind an address in its line is passed over, and
// so is the number of a frame before it (#3), so that stack traces can be piped
// in.
func (s *resolveSettings) each(stdin io.Reader, f func(text string) error) error {
	for _, text := range s.addresses {
		if err := f(text); err != nil {
			return err
		}
	}
	if len(s.addresses) > 0 || stdin == nil {
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
	w     *bufio.Writer
	json  bool
	first bool
}

func newResolvePrinter(w io.Writer, json bool) *resolvePrinter {
	return &resolvePrinter{w: bufio.NewWriterSize(w, 64<<10), json: json, first: true}
}

func (p *resolvePrinter) print(a *locate.Address) error {
	if p.json {
		return p.printJSON(a)
	}
	columns := []string{a.Address, a.Object, a.FileOffset, a.Base, "", a.Source}
	if a.Function != "" {
		columns[4] = a.Place.String()
	}
	for i, c := range columns {
		columns[i] = message.OneLine(message.OrDash(c))
	}
	p.w.WriteString(strings.Join(columns, "\t"))
	err := p.w.WriteByte('\n')
	for _, f := range a.Inlines {
		p.w.WriteString("\tinline\t" + message.OneLine(f.Function) + "\t" + message.OneLine(message.OrDash(f.Source)))
		err = p.w.WriteByte('\n')
	}
	return err
}

func (p *resolvePrinter) printJSON(a *locate.Address) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	p.separate()
	_, err = p.w.Write(data)
	return err
}

// separate writes what stands before an element of the document.
func (p *resolvePrinter) separate() {
	if p.first {
		p.w.WriteString("{\"version\": 1, \"addresses\": [\n")
		p.first = false
		return
	}
	p.w.WriteString(",\n")
}

func (p *resolvePrinter) close() error {
	if p.json {
		if p.first {
			p.separate()
		}
		p.w.WriteString("\n]}\n")
	}
	return p.w.Flush()
}
