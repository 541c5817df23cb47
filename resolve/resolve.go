// Package resolve answers which function holds an address.
//
// In a relocatable object an address is a section and an offset in it, so the
// functions of one section never answer for another. In a linked image the
// section is 0 and the offset the address that the image was linked for.
//
// The functions of an object are those of .symtab. Those of an image come from
// the first of these that has any:
//
//  1. its .symtab;
//  2. the .symtab of its separate debug file, which is found by its build ID or by
//     .gnu_debuglink as gdb does;
//  3. its .dynsym.
//
// The debug file comes before .dynsym, other than in a plain search for "a symbol
// table": a library without .symtab exports a small part of its functions, and
// its static ones have to be named too. An address that no symbol holds is looked
// up in the ranges of .eh_frame and .ARM.exidx, and among the descriptors of .opd:
// those functions are there, and have no name.
//
// docs/resolve.md has the rules by which one of several symbols is chosen.
//
// Begin with New; Table.Lookup finds the function of an address. Sizes and offsets
// are in bytes.
package resolve

import (
	"debug/elf"
	"fmt"
	"math"
	"slices"
	"sync"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
)

// Source is where a function is known from.
type Source uint8

const (
	Symtab      Source = iota // .symtab of the object or image
	Debug                     // .symtab of its separate debug file
	Dynsym                    // .dynsym
	Mini                      // .dynsym, or .symtab in .gnu_debugdata
	EhFrame                   // .eh_frame: the name is made up, sub_<address>; so it is for the rest
	Exidx                     // .ARM.exidx
	Descriptors               // a function descriptor, as of .opd
	Recorded                  // a table of functions of sdtconvert, by Table.Recorded: a symbol's name without the symbol
)

// IsSymbol reports whether a function's name is that of a symbol.
func (s Source) IsSymbol() bool { return s < EhFrame }

// Function is code that a symbol or an unwind table stands for.
type Function struct {
	Name    string // as the source has it: Raw without what compilers append
	Raw     string // the symbol's name
	From    Source
	Symbol  int    // its index in the symbol table, 0 for none
	Section int    // of an object: the section that holds it
	Start   uint64 // offset in Section, or the address
	Size    uint64 // bytes; 0 when unknown: it ends where the next one starts
	// Unsized reports that only the start of the function is known, from a symbol without a
	// size for one, and that nothing says that the function reaches as far as the address.
	Unsized bool
}

// Options say where else than in an image to look.
type Options struct {
	// Path is where the image is. Without it, no file that is named by a
	// .gnu_debuglink is found.
	Path string
	// DebugRoots are the directories of debug files; nil means those where systems have
	// them, /usr/lib/debug for one.
	DebugRoots []string
	// Debug gives the separate debug file of the image, nil when there is none,
	// and is called once at most: when .symtab has no function. So a caller that
	// reads the file too opens it once; it has to stay open until New returns.
	// An error is for Warn. With Debug, Path and DebugRoots are not looked at;
	// nil means that New finds the file, and closes it again.
	Debug func() (*elfreloc.Object, error)
	// Dynsym are the dynamic symbols of an image without section headers, which
	// a caller has found as the loader does (gABI, chapter 5, "Dynamic Section");
	// nil means those of SHT_DYNSYM. The table keeps them.
	Dynsym *elfreloc.Symbols
	// Warn is told what was passed over: a debug file of another build, an
	// .eh_frame that makes no sense. It is called by New and by the look-up that
	// reads .eh_frame, once each fault. nil means that no one is told.
	Warn func(error)
}

func (o *Options) warn(err error) {
	if o.Warn != nil && err != nil {
		o.Warn(err)
	}
}

// Table holds the functions of one object or image. It may be used from several
// goroutines. The first address of an image that no symbol holds makes it read
// .eh_frame, for which the image has to be open still.
type Table struct {
	from        Source
	symbols     *elfreloc.Symbols
	symbolSpans spans         // by symbols
	unwound     func() *spans // by unwind tables and descriptors; reads them once
	files       []uint32      // the STT_FILE symbols, ascending
	golang      bool          // see fold
	debugPath   string
}

// New makes the table of an object or image. It reads all of the symbols, and keeps
// them; of the rest of o it may read .eh_frame later (see Table).
//
// Symbols, sections and program headers that make no sense are an error, with the
// file's name, and the table is of no use then. What is wrong with a debug file or
// an .eh_frame is for opts.Warn. Without any function the table is empty, and that
// is not an error.
func New(o *elfreloc.Object, opts Options) (*Table, error) {
	t := &Table{golang: isGo(o), unwound: func() *spans { return &spans{} }}
	code, err := o.Code()
	if err != nil {
		return nil, err
	}
	if o.Type == elf.ET_REL {
		return t, t.useSymtab(o, code)
	}
	t.unwound = sync.OnceValue(func() *spans {
		frames, err := readUnnamed(o, machines.Conventions(o.ABI()))
		opts.warn(err)
		s := makeSpans(code, frameEntries(code, frames))
		return &s
	})
	for _, tryNames := range []func() error{
		func() error { return t.useSymtab(o, code) },
		func() error { t.useDebugFile(o, code, &opts); return nil },
		func() error { return t.useDynsym(o, code, &opts) },
	} {
		if err := tryNames(); err != nil || t.symbolSpans.len() > 0 {
			return t, err
		}
	}
	return t, nil
}

func (t *Table) useSymtab(o *elfreloc.Object, code elfreloc.Code) error {
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	return t.setSymbols(o, syms, Symtab, code)
}

// useDebugFile takes the symbols of a debug file. Nothing that is wrong with it
// is a fault of the image.
func (t *Table) useDebugFile(o *elfreloc.Object, code elfreloc.Code, opts *Options) {
	var debug *elfreloc.Object
	var err error
	if opts.Debug != nil {
		debug, err = opts.Debug()
	} else if f, openErr := debuginfo.OpenDebugFile(o, opts.Path, opts.DebugRoots); f != nil {
		defer f.Close()
		debug, err = f.Object, openErr
	} else {
		err = openErr
	}
	opts.warn(err)
	if debug == nil {
		return
	}
	syms, err := debug.Symbols()
	if err == nil {
		err = t.setSymbols(o, syms, Debug, code)
	}
	if err != nil {
		opts.warn(fmt.Errorf("debug file %w", err))
		return
	}
	t.debugPath = debug.Name
}

// useDynsym takes the dynamic symbols and the symbols in .gnu_debugdata, which names functions that .dynsym lacks.
func (t *Table) useDynsym(o *elfreloc.Object, code elfreloc.Code, opts *Options) (err error) {
	syms := opts.Dynsym
	if syms == nil {
		if syms, err = o.DynamicSymbols(); err != nil {
			return err
		}
	}
	mini, err := debuginfo.MiniDebugInfo(o)
	opts.warn(err)
	if mini == nil {
		return t.setSymbols(o, syms, Dynsym, code)
	}
	miniSymbols, err := mini.Symbols()
	if err != nil {
		opts.warn(err)
		return t.setSymbols(o, syms, Dynsym, code)
	}
	return t.setSymbols(o, syms.Join(miniSymbols), Mini, code)
}

// setSymbols fills the table from a symbol table.
func (t *Table) setSymbols(o *elfreloc.Object, syms *elfreloc.Symbols, from Source, code elfreloc.Code) error {
	if uint64(syms.Len()) > math.MaxUint32 {
		return &elfreloc.Error{File: o.Name, Err: fmt.Errorf("%d symbols", syms.Len())}
	}
	c := &collector{o: o, syms: syms, code: code, conventions: machines.Conventions(o.ABI())}
	if err := c.collect(); err != nil {
		return err
	}
	t.from, t.symbols, t.files = from, syms, c.files
	c.sortEntries()
	t.symbolSpans = makeSpans(code, c.entries)
	return nil
}

// DebugFile returns the path of the separate debug file that the symbols come from,
// "" when they do not come from one.
func (t *Table) DebugFile() string { return t.debugPath }

// Lookup returns the innermost function that holds offset off of a section, or of
// an image, where the section is 0, the address off. false means that none does.
func (t *Table) Lookup(section int, off uint64) (Function, bool) {
	e := t.symbolSpans.find(section, off)
	if e != nil && e.size == 0 {
		return t.unsized(e, section, off)
	}
	if e != nil {
		return t.function(e, section), true
	}
	if e := t.findUnwound(section, off); e != nil {
		return unnamed(e, section), true
	}
	return Function{}, false
}

// findUnwound returns the unwind table's entry for an address that no symbol with a size
// holds, nil for none. If the entry does not say where its function ends, and a symbol at its
// start does, the function has ended before the address.
func (t *Table) findUnwound(section int, off uint64) *entry {
	e := t.unwound().find(section, off)
	if e == nil || !e.frame.endsUnknown() {
		return e
	}
	if symbol := t.symbolSpans.at(e.code, e.start); symbol != nil && symbol.size > 0 {
		return nil
	}
	return e
}

// unsized is Lookup where all that is found is a symbol without a size. Unwind tables tell
// whether its function reaches as far as the address.
func (t *Table) unsized(e *entry, section int, off uint64) (Function, bool) {
	f, unwound := t.function(e, section), t.unwound()
	u := t.findUnwound(section, off)
	if u == nil || u.start < e.start && (!e.typeless() || u.frame.endsUnknown()) { // whose functions have other entries
		f.Unsized = true
		if unwound.at(e.code, e.start) != nil || unwound.len() > 0 && unwound.after(e.code, e.start) <= off {
			return Function{}, false // it has ended, or another one has begun and ended
		}
		return f, true
	}
	if u.start == e.start {
		f.Unsized = u.frame.endsUnknown()
		return f, true
	}
	// Another function begins behind the symbol, or the symbol is a label in another.
	if function := t.symbolSpans.at(u.code, u.start); function != nil {
		return t.function(function, section), true
	}
	return unnamed(u, section), true
}

// function returns the function of an entry of a symbol.
func (t *Table) function(e *entry, section int) Function {
	raw := t.symbols.Name(int(e.symbol))
	if len(raw) > longestName {
		raw = raw[:longestName] + "..."
	}
	return Function{
		Name: fold(raw, t.golang), Raw: raw, From: t.from,
		Symbol: int(e.symbol), Section: section, Start: e.start, Size: e.size,
	}
}

// Recorded returns the function of a symbol's name that begins at an address, as an image records it.
func (t *Table) Recorded(raw string, section int, start uint64) Function {
	return Function{Name: fold(raw, t.golang), Raw: raw, From: Recorded, Section: section, Start: start}
}

// unnamed returns the function of an entry of an unwind table.
func unnamed(e *entry, section int) Function {
	name := fmt.Sprintf("sub_%x", e.start)
	return Function{
		Name: name, Raw: name, From: frameSources[e.frame],
		Section: section, Start: e.start, Size: e.size, Unsized: e.frame.endsUnknown(),
	}
}

// longestName bounds what is told of a function's name, in bytes. In a hostile file
// one name of a megabyte is that of all sites, or many share its bytes.
const longestName = 4096

// Place shows an address as symbol+offset, by the symbol's own name and in
// hexadecimal bytes from its start, or "" when no function holds it.
func (t *Table) Place(section int, off uint64) string {
	f, ok := t.Lookup(section, off)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s+%#x", f.Raw, off-f.Start)
}

// SourceFile returns the name that the source file of a local function had when
// it was compiled, without directories: it tells functions of one name apart. It is
// "" for others, since symbol tables group only local symbols by file.
func (t *Table) SourceFile(f Function) string {
	if f.Symbol == 0 || f.From != t.from || f.Symbol >= t.symbols.FirstGlobal() {
		return ""
	}
	i, _ := slices.BinarySearch(t.files, uint32(f.Symbol))
	if i == 0 {
		return ""
	}
	return t.symbols.Name(int(t.files[i-1]))
}

// From returns where the table's symbols come from; EhFrame when it has none.
func (t *Table) From() Source {
	if t.symbolSpans.len() == 0 {
		return EhFrame
	}
	return t.from
}
