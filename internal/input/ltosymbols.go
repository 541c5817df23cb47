package input

import (
	"bytes"
	"fmt"
	"strings"
)

// LTOSymbol is a global symbol of intermediate code.
type LTOSymbol struct {
	Name    string
	Defined bool
}

// ltoTable begins the name of the sections in which GCC keeps the symbols of its
// intermediate code for plugins of linkers.
const ltoTable = ".gnu.lto_.symtab"

// LTOSymbols returns the symbols of the intermediate code of a source: of GCC's in an object,
// or of LLVM bitcode, for which o is nil.
func (s *Source) LTOSymbols(o *Object) ([]LTOSymbol, error) {
	if o == nil {
		code := make([]byte, s.Size)
		if err := s.readFull(code); err != nil {
			return nil, err
		}
		symbols, err := bitcodeSymbols(code)
		if err != nil {
			err = fmt.Errorf("%s: %w; compile it with -fno-lto", s.Name, err)
		}
		return symbols, err
	}
	var all []LTOSymbol
	for i := range o.Sections {
		sec := &o.Sections[i]
		if !strings.HasPrefix(sec.Name, ltoTable) && sec.Name != ".llvm.lto" {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		read := gccSymbols
		if sec.Name == ".llvm.lto" {
			read = bitcodeSymbols
		}
		symbols, err := read(data)
		if err != nil {
			return nil, o.SectionError(i, err)
		}
		all = append(all, symbols...)
	}
	return all, nil
}

// gccSymbols reads a table of GCC (lto-streamer-out.cc, write_symbol): for each symbol its
// name and the name of its COMDAT group, each with a zero byte behind, a byte of its kind, of
// its visibility, eight of its size, and four of its place.
func gccSymbols(table []byte) (all []LTOSymbol, err error) {
	const fixed = 1 + 1 + 8 + 4
	for len(table) > 0 {
		name, rest, ok := bytes.Cut(table, []byte{0})
		_, rest, group := bytes.Cut(rest, []byte{0})
		if !ok || !group || len(rest) < fixed {
			return nil, fmt.Errorf("its table of symbols is cut off")
		}
		const undefined, weakUndefined = 2, 3 // GCCPK_UNDEF, GCCPK_WEAKUNDEF
		all = append(all, LTOSymbol{string(name), rest[0] != undefined && rest[0] != weakUndefined})
		table = rest[fixed:]
	}
	return all, nil
}
