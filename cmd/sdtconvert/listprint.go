package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"sdtconvert/internal/message"
)

// listPrinter prints listings as dtrace -l does, or as one JSON document.
type listPrinter struct {
	*listSettings
	w, stderr io.Writer
	listings  []*listing // for JSON
	printed   int        // probes
	failed    bool
	err       error
}

func (p *listPrinter) warn(err error) { message.Warning(p.stderr, err) }

// listing prints what came of one image, and numbers its probes.
func (p *listPrinter) listing(l *listing) {
	for _, err := range l.Errors {
		p.failed = true
		message.Error(p.stderr, errors.New(err))
	}
	first := p.printed == 0
	for _, probe := range l.Probes {
		p.printed++
		probe.Number = p.printed
	}
	if p.json {
		p.listings = append(p.listings, l)
		return
	}
	w := bufio.NewWriter(p.w)
	if first && len(l.Probes) > 0 {
		message.Line(w, rowFormat, "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
	}
	for _, probe := range l.Probes {
		p.probe(w, probe)
	}
	p.err = errors.Join(p.err, w.Flush())
}

// rowFormat has the columns of dtrace -l.
const rowFormat = "%5v %10s %17s %33s %s"

func (p *listPrinter) probe(w io.Writer, probe *listedProbe) {
	message.Line(w, rowFormat, probe.Number, probe.Provider, probe.Module, probe.Function, probe.Name)
	if !p.verbose {
		return
	}
	for _, a := range probe.Arguments {
		translated := ""
		if a.Translated != "" {
			translated = " -> " + a.Translated
		}
		message.Line(w, "      args[%d]  %s%s", a.Index, a.Native, translated)
	}
	for i := range probe.Sites {
		printSite(w, &probe.Sites[i])
	}
}

func printSite(w io.Writer, s *listedSite) {
	address := s.Address
	if s.Section != "" {
		address = s.Section + "+" + address
	}
	source := ""
	if s.Source != "" {
		source = "  " + s.Source
	}
	message.Line(w, "      site     %s  %s  %s  %s%s", address, s.placed.String(), s.Kind, s.State, source)
	for _, f := range s.Inlines {
		message.Line(w, "        inline %s  %s", f.Function, message.OrDash(f.Source))
	}
}

// close ends the output, and reports whether anything failed.
func (p *listPrinter) close(err error) (bool, error) {
	if p.json && (err == nil || len(p.listings) > 0) {
		enc := json.NewEncoder(p.w)
		enc.SetIndent("", "  ")
		p.err = errors.Join(p.err, enc.Encode(struct {
			Version int        `json:"version"`
			Images  []*listing `json:"images"`
		}{listingVersion, p.listings}))
	}
	if p.printed == 0 && !p.failed && err == nil {
		err = errors.New("no probe matches")
	}
	return p.failed, errors.Join(err, p.err)
}

// listingVersion counts the incompatible changes of the listing's format.
const listingVersion = 1
