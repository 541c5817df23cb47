package emit

import (
	"bytes"
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Object is an assembler that makes an object, by an edit of an empty one.
type Object struct {
	e        *elfreloc.Edit
	m        arch.Machine // nil where there is nothing but data without addresses
	sections []*objectSection
	groups   map[string]int // group section by signature
	symbols  map[string]uint32
	labels   map[string]localLabel
	nameFaults
}

type objectSection struct {
	Section
	data   []byte
	relocs []pendingReloc
	syms   []pendingSymbol
}

// pendingReloc is a relocation before all names are known.
type pendingReloc struct {
	elfreloc.Relocation
	name string
}

type pendingSymbol struct {
	Symbol
	at uint64
}

// localLabel is where a local label is.
type localLabel struct {
	section int // in Object.sections
	at      uint64
}

// NewObject starts the edit of an empty object. file is the name that the object
// gives as its source.
func NewObject(empty *elfreloc.Object, m arch.Machine, file string) (*Object, error) {
	e, err := empty.Edit()
	if err != nil {
		return nil, err
	}
	e.AddSymbol(elfreloc.Symbol{Name: file, Bind: elf.STB_LOCAL, Type: elf.STT_FILE, Section: elfreloc.SectionAbs})
	return &Object{e: e, m: m, groups: map[string]int{}, symbols: map[string]uint32{}, labels: map[string]localLabel{}, nameFaults: nameFaults{defined: map[string]bool{}}}, nil
}

func (o *Object) last() *objectSection { return o.sections[len(o.sections)-1] }
func (o *Object) here() uint64         { return uint64(len(o.last().data)) }

func (o *Object) Section(s Section) { o.sections = append(o.sections, &objectSection{Section: s}) }

func (o *Object) Symbol(s Symbol) {
	o.checkName(s.Name)
	o.last().syms = append(o.last().syms, pendingSymbol{s, o.here()})
}

func (o *Object) Label(local string) {
	o.checkName(local)
	o.labels[local] = localLabel{len(o.sections) - 1, o.here()}
}

func (o *Object) add(b []byte) { o.last().data = append(o.last().data, b...) }

func (o *Object) relocate(at uint64, typ uint32, name string, addend int64) {
	r := elfreloc.Relocation{Offset: at, Type: typ, Addend: addend}
	o.last().relocs = append(o.last().relocs, pendingReloc{r, name})
}

func (o *Object) Word(name string, addend int64) {
	l := o.e.Object().Encoding
	b := make([]byte, l.Word())
	if name == "" {
		l.PutWord(b, uint64(addend))
	} else {
		o.relocate(o.here(), o.m.Traits().Word, name, addend)
	}
	o.add(b)
}

func (o *Object) Int(v uint32) {
	b := make([]byte, 4)
	o.e.Object().Encoding.Order.PutUint32(b, v)
	o.add(b)
}

func (o *Object) String(s string) { o.add(append([]byte(s), 0)) }
func (o *Object) Zero(n int)      { o.add(make([]byte, n)) }
func (o *Object) Align(n int)     { o.Zero(-len(o.last().data) & (n - 1)) }

func (o *Object) Insn(i arch.Insn) {
	if i.Reloc != nil {
		o.relocate(o.here()+i.Reloc.Offset, i.Reloc.Type, i.Symbol, i.Reloc.Addend)
	}
	o.add(i.Code)
}

func (o *Object) Keep(at, name string) {
	o.relocate(o.labels[at].at, o.m.Traits().None, name, 0)
}

// Bytes returns the object.
func (o *Object) Bytes() ([]byte, error) {
	indexes := make([]int, len(o.sections))
	for i, s := range o.sections {
		indexes[i] = o.addSection(s)
	}
	for i, s := range o.sections {
		for _, sym := range s.syms {
			o.set(sym, indexes[i])
		}
	}
	for i, s := range o.sections {
		for _, r := range s.relocs {
			o.resolve(&r, indexes)
			if !o.rela() {
				o.store(s.data, r.Relocation)
			}
			if err := o.e.AddRelocation(indexes[i], r.Relocation); err != nil {
				return nil, err
			}
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return EditedFile(o.e)
}

// EditedFile returns the file of an edited object that is in memory.
func EditedFile(e *elfreloc.Edit) ([]byte, error) {
	out, err := e.Output()
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	err = out.Write(&file, objectReader{e.Object()})
	return file.Bytes(), err
}

// objectReader reads the file of an object.
type objectReader struct{ o *elfreloc.Object }

func (r objectReader) ReadAt(b []byte, off int64) (int, error) {
	data, err := r.o.ReadFile(off, int64(len(b)))
	return copy(b, data), err
}

func (o *Object) addSection(s *objectSection) int {
	like := 0
	if s.Group != "" {
		var ok bool
		if like, ok = o.groups[s.Group]; !ok {
			like = o.e.AddGroup(o.symbol(s.Group))
			o.groups[s.Group] = like
		}
	}
	index := o.e.AddSection(elfreloc.NewSection{
		Name: s.Name, Type: s.Type, Flags: s.Flags, Align: s.Align, Data: s.data,
		Relocs: len(s.relocs) > 0, Rela: o.rela(), GroupOf: like,
	})
	if s.Flags&elf.SHF_EXECINSTR != 0 && o.m.Traits().CodeMark != "" {
		o.e.AddSymbol(elfreloc.Symbol{Name: o.m.Traits().CodeMark, Bind: elf.STB_LOCAL, Section: index})
	}
	return index
}

// symbol returns the symbol of a name, undefined at first.
func (o *Object) symbol(name string) uint32 {
	i, ok := o.symbols[name]
	if !ok {
		i = o.e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_GLOBAL})
		o.symbols[name] = i
	}
	return i
}

func (o *Object) set(s pendingSymbol, section int) {
	sym := elfreloc.Symbol{Name: s.Name, Bind: s.Bind, Type: s.Type, Section: section, Value: s.at, Size: s.Size}
	if s.Hidden {
		sym.Other = byte(elf.STV_HIDDEN)
	}
	o.e.SetSymbol(o.symbol(s.Name), sym)
}

// rela reports whether relocations have addends.
func (o *Object) rela() bool { return o.m == nil || o.m.Traits().Rela }

// store puts the addend of a relocation into its field, where it is one of data. In
// instructions it is already.
func (o *Object) store(data []byte, r elfreloc.Relocation) {
	l := o.e.Object().Encoding
	if r.Type == o.m.Traits().Word {
		l.PutWord(data[r.Offset:], uint64(r.Addend))
	}
}

// resolve finds the symbol of a relocation. A local label is its section's symbol
// and an offset.
func (o *Object) resolve(r *pendingReloc, indexes []int) {
	if r.name == "" {
		return
	}
	if !isLocal(r.name) {
		r.Sym = o.symbol(r.name)
		return
	}
	l, ok := o.labels[r.name]
	if !ok {
		o.fail(fmt.Errorf("the label %s is nowhere", r.name))
		return
	}
	r.Sym = o.e.SectionSymbol(indexes[l.section])
	r.Addend += int64(l.at)
}

// SourceFiles returns the names of an object's source files. They tell an object that this
// program has made.
func SourceFiles(o *elfreloc.Object) ([]string, error) {
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	var files []string
	for i := 1; i < syms.FirstGlobal(); i++ {
		if syms.At(i).Type == elf.STT_FILE {
			files = append(files, syms.Name(i))
		}
	}
	return files, nil
}
