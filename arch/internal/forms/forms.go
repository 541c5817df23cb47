// Package forms has tables of disabled forms and the reader of marked NOPs, for machines
// whose forms are constants.
package forms

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Table has a disabled form for each kind and form of a site, nil where there is none.
type Table [arch.Kinds][arch.Forms][]byte

// Code returns the disabled form of a site, or refuses a site that has none. The form is not
// to be modified.
func (t *Table) Code(s arch.Site, k arch.Kind) ([]byte, error) {
	switch code := t[k][s.Form]; {
	case code != nil:
		return code, nil
	case s.Form == arch.Nop:
		return nil, arch.RefuseNop(k)
	}
	return nil, arch.RefuseSite(k, s.Form, "", "")
}

// Find compares the bytes at a record with the calls and tail calls of a kind.
func (t *Table) Find(text arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	for _, form := range []arch.Form{arch.Call, arch.Tail} {
		want := t[k][form]
		if code := text.At(record, len(want)); want != nil && bytes.Equal(code, want) {
			return arch.Site{Offset: record, Form: form, Code: code}, true
		}
	}
	return arch.Site{}, false
}

// Mark says which NOPs a relocation that does nothing may mark.
type Mark struct {
	Nops  [][]byte // those that Disable makes of direct calls, the longest first
	Align uint64   // of marks, in bytes; 1 for any
	Want  string   // these, in messages: "a nop"
	Fix   string   // what to mark instead
	// Show shows other code; nil for its bytes in hexadecimal.
	Show func(code []byte) string
}

// Decode returns the site of a marked NOP.
func (m *Mark) Decode(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	code, cut := m.read(t, r.Offset)
	switch {
	case cut:
		return arch.Site{}, arch.Refuse(m.Fix, "a mark that the section's end cuts off")
	case !m.isNop(code):
		return arch.Site{}, arch.Refuse(m.Fix, "a mark of %s instead of %s", m.show(code), m.Want)
	case r.Offset%m.Align != 0:
		return arch.Site{}, arch.Refuse(m.Fix, "a mark of a nop that is not aligned")
	case r.Addend != 0:
		return arch.Site{}, arch.Refuse(m.Fix, "a mark with the stub%+d", r.Addend)
	}
	return arch.Site{Offset: r.Offset, Form: arch.Nop, Code: code}, nil
}

// read returns the NOP at an offset, or else as many bytes as the shortest one has. cut reports
// whether the section ends within a NOP.
func (m *Mark) read(t arch.Text, off uint64) (code []byte, cut bool) {
	for _, nop := range m.Nops {
		if code = t.At(off, len(nop)); bytes.Equal(code, nop) {
			return code, cut && t.At(off, len(nop)+1) != nil
		}
		if code == nil {
			cut = cut || bytes.HasPrefix(nop, toEnd(t, off, len(nop)))
		}
	}
	return code, cut || code == nil
}

// toEnd returns the code from an offset to the end of a section, which has fewer than n bytes.
func toEnd(t arch.Text, off uint64, n int) []byte {
	for n--; n > 0; n-- {
		if code := t.At(off, n); code != nil {
			return code
		}
	}
	return nil
}

func (m *Mark) isNop(code []byte) bool {
	return slices.ContainsFunc(m.Nops, func(nop []byte) bool { return bytes.Equal(code, nop) })
}

func (m *Mark) show(code []byte) string {
	if m.Show != nil {
		return m.Show(code)
	}
	return fmt.Sprintf("% x", code)
}

// decoder guards the decoders of golang.org/x/arch, which write package-level variables.
var decoder sync.Mutex

// Disassemble shows code, a string for each instruction or piece of data that show shows the first n
// bytes as. What is left at the end, less than step bytes, is not shown.
func Disassemble(code []byte, step int, show func(code []byte) (text string, n int)) (out []string) {
	decoder.Lock()
	defer decoder.Unlock()
	for len(code) >= step {
		text, n := show(code)
		out = append(out, text)
		code = code[n:]
	}
	return out
}
