package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"sdtconvert/internal/message"
)

// resolveSettings are what the flags of resolve say.
type resolveSettings struct {
	lookup
	json      bool
	pid       int
	image     string // unless pid is given
	addresses []string
}

// resolveAddresses is the command that tells where addresses are.
func (p *program) resolve(args []string) (failed bool, err error) {
	s, err := parseResolve(args)
	if err != nil {
		return false, err
	}
	warn := func(err error) { message.Warning(p.Stderr, err) }
	space, err := s.open(warn)
	if err != nil {
		return false, err
	}
	defer space.Close()
	out := newResolvePrinter(p.Stdout, s.json)
	err = s.each(p.Stdin, func(text string) error {
		r, err := resolveOne(space, text)
		if err != nil {
			failed = true
			message.Error(p.Stderr, err)
		}
		return out.print(r)
	})
	return failed, errors.Join(err, out.close())
}

func parseResolve(args []string) (*resolveSettings, error) {
	s := &resolveSettings{lookup: lookup{source: true}}
	f := newFlagSet("resolve")
	s.lookup.define(f)
	f.BoolVar(&s.json, "json", false, "")
	f.IntVar(&s.pid, "pid", 0, "")
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
	s.image, s.addresses = s.addresses[0], s.addresses[1:]
	return s, nil
}

func (s *resolveSettings) open(warn func(error)) (space, error) {
	if s.pid != 0 {
		return openProcessSpace(s.pid, s.lookup, warn)
	}
	u, err := openUnit(s.image, s.lookup, warn)
	if err != nil {
		return nil, err
	}
	if err := u.readNames(); err != nil {
		u.Close()
		return nil, err
	}
	return &fileSpace{unit: u}, nil
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

// resolved is what is known of an address. docs/listing.md describes its JSON.
type resolved struct {
	Address    string `json:"address"`
	Object     string `json:"object,omitempty"`
	FileOffset string `json:"file_offset,omitempty"`
	Base       string `json:"base,omitempty"`
	placed
}

// resolveOne tells where an address is. What is not known is left empty; an
// address that is nowhere is an error too.
func resolveOne(s space, text string) (*resolved, error) {
	r := &resolved{Address: text}
	a, err := s.parse(text)
	if err != nil {
		return r, err
	}
	u, err := s.unitAt(a)
	if err != nil {
		return r, err
	}
	r.Object, r.Base = u.path, fmt.Sprintf("%#x", u.base)
	if off, ok := s.fileOffset(a); ok {
		r.FileOffset = fmt.Sprintf("%#x", off)
	}
	r.placed = u.place(a)
	return r, nil
}
