package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"sdtconvert/internal/message"
)

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

func (p *resolvePrinter) print(r *resolved) error {
	if p.json {
		return p.printJSON(r)
	}
	columns := []string{r.Address, r.Object, r.FileOffset, r.Base, "", r.Source}
	if r.Function != "" {
		columns[4] = r.placed.String()
	}
	for i, c := range columns {
		columns[i] = message.OneLine(message.OrDash(c))
	}
	p.w.WriteString(strings.Join(columns, "\t"))
	err := p.w.WriteByte('\n')
	for _, f := range r.Inlines {
		p.w.WriteString("\tinline\t" + message.OneLine(f.Function) + "\t" + message.OneLine(message.OrDash(f.Source)))
		err = p.w.WriteByte('\n')
	}
	return err
}

func (p *resolvePrinter) printJSON(r *resolved) error {
	data, err := json.Marshal(r)
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
