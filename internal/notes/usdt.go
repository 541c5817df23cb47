package notes

// DTrace for Linux reads .note.usdt, as the macros of its own sys/usdt.h make it.
//
// A note has owner "usdt" and type 1, and describes one site:
//
//	u64 address of the site
//	u64 address of the name of the function that the site is in, a string
//	    provider and name, strings with their NUL
//	u8  number of arguments
//	    operands, as SystemTap's notes have them, a string with its NUL
//
// DTrace looks the function's name up in the section .rodata of the linked image, so
// the strings are in sections that all linkers put there.
//
// Such notes say where probes are. What a provider's probes are, with their types, is
// in a note of owner "prov", which `dtrace -G` writes beside the code that registers
// the program. DTrace takes the notes of an image all or none: each site needs a probe
// of its name, and of as many arguments, in that note.

import (
	"debug/elf"
	"regexp"
	"slices"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// usdtSection is the name of the sections of notes.
const usdtSection = ".note.usdt"

const (
	usdtOwner = "usdt"
	usdtType  = 1
)

// functionSection is the name of the sections of functions' names. They are no
// mergeable strings: what one linker shares, another puts into a section of its own.
const functionSection = ".rodata.sdt_functions"

// The greatest sizes that DTrace has room for, in bytes with the NUL
// (DTRACE_FUNCNAMELEN), and in the field of a note.
const (
	maxFunction      = 128
	MaxUSDTArguments = 255
)

// USDTNote is the note that AddUSDT writes of one site.
type USDTNote struct {
	Provider  string // with __ for dashes, as Name
	Name      string
	Function  string // cut where DTrace has no room for it
	Arguments int    // how many there are, at most MaxUSDTArguments
	Operands  string // of all of them, separated by spaces
	Site      linkerset.SymbolRef
}

// WroteUSDT reports whether a section was made by AddUSDT: there is one for each
// text section, with notes or without.
func WroteUSDT(s *elfreloc.Section) bool { return s.Name == functionSection }

// AddUSDT adds the notes of text section text, which may be none. It returns what text
// has to refer to in order to keep them alive.
func (w *Writer) AddUSDT(text int, rela bool, probes []USDTNote) (anchors []linkerset.SymbolRef, err error) {
	names, at := functionNames(probes)
	sym := w.edit.SectionSymbol(w.edit.AddSection(elfreloc.NewSection{
		Name: functionSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: names, GroupOf: text,
	}))
	if len(probes) == 0 {
		return nil, nil
	}
	n := w.newSection(rela, len(probes))
	for i, p := range probes {
		n.add(usdtOwner, usdtType, func(n *sectionNotes) {
			n.word64(p.Site)
			n.word64(linkerset.SymbolRef{Sym: sym, Addend: at[i]})
			n.string(p.Provider)
			n.string(p.Name)
			n.byte(byte(p.Arguments))
			n.string(p.Operands)
		})
	}
	notes, err := w.addSection(usdtSection, text, n)
	return []linkerset.SymbolRef{notes, {Sym: sym}}, err
}

// functionNames makes the contents of a section of functions' names, each there once, and
// tells where that of each probe is. At 0 there is "".
func functionNames(probes []USDTNote) (names []byte, at []int64) {
	names, offsets := []byte{0}, map[string]int64{"": 0}
	for _, p := range probes {
		name := p.Function[:min(len(p.Function), maxFunction-1)]
		offset, ok := offsets[name]
		if !ok {
			offset = int64(len(names))
			offsets[name] = offset
			names = append(append(names, name...), 0)
		}
		at = append(at, offset)
	}
	return names, at
}

// usdtOperand is what DTrace reads of an argument (libdtrace/dt_prov_uprobe.c, copy_args):
// a general register, a constant, or memory that general registers lead to, in the
// syntax of AT&T or of Arm. It is compiled when it is first asked for: few runs need it, and
// all would wait for it.
var usdtOperand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?[0-9]+@(?:` +
		`%(?:r[0-9]+[dwb]?|[re]?[abcd]x|[abcd][lh]|[re]?(?:si|di|sp|bp|ip)|(?:si|di|sp|bp)l)` +
		`|[xw][0-9]+|sp|lr|a[0-9]+` +
		`|\$?-?[0-9]+` +
		`|(?:-?[0-9]+)?\(%[a-z0-9]+(?:,%[a-z0-9]+(?:,[1248])?)?\)` +
		`|-?[0-9]+\([a-z][a-z0-9]*\)` +
		`|\[[a-z0-9]+(?:, *(?:-?[0-9]+|[a-z0-9]+))?\]` +
		`)$`)
})

// CountOperands counts operands. bad is the first that DTrace does not read, or "".
func CountOperands(operands string) (n int, bad string) {
	split := arch.SplitOperands(operands)
	if i := slices.IndexFunc(split, func(one string) bool { return !usdtOperand().MatchString(one) }); i >= 0 {
		bad = split[i]
	}
	return len(split), bad
}
