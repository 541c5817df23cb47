// Package linkerset writes and reads the records of probe sites.
//
// A record says that the probe object `sdt_<id>` has a site at an address. The
// records of one text section stand in one section of their own, so that a
// linker which drops the text can drop them with it; in the final link the
// sections of one name become one array, which the program finds between
// __start_<section> and __stop_<section>.
//
// Three layouts exist because no one serves all: two absolute words are what
// every linker and kernel can do; distances of 32 bits need no dynamic
// relocations in position-independent code; pointers to structures are what
// FreeBSD's sys/linker_set.h and its kernel linker look for.
//
// Begin with Layout: Layout.Read lists the records of an image (package image),
// and NewProbes finds out what probes they are of. Layout.Add writes records into
// an object that is edited; package patch does so for the sites it disables.
// What the sections of a layout hold is said by Layout.Arrays.
package linkerset

import (
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Format is the shape of a record: one of the constants below.
type Format uint8

const (
	Pairs    Format = iota // { word probe; word offset }, absolute
	Relative               // { int32 probe; int32 offset }, each from its own field
	FreeBSD                // pointers to { word probe; word offset }

	// Tracepoints are the records that FreeBSD's kernel makes by itself since 15:
	// { word probe; word site; word target; word link }. They are only read.
	Tracepoints
)

// Formats returns all that are written, Pairs first.
func Formats() []Format { return []Format{Pairs, Relative, FreeBSD} }

// String returns the format's name, as ParseLayout takes it.
func (f Format) String() string { return formats[f].name }

// Layout is a format and the name that its section names derive from. The zero
// Layout is Pairs in sections of its own names. Layouts may be compared.
type Layout struct {
	Format Format
	Name   string // a C identifier: of the section of probe calls; "" for the format's own
}

// ParseLayout makes a Layout from the name of a format ("pairs", "relative" or
// "freebsd") and a section name, which may be "". The error says what is wrong
// with which of them.
func ParseLayout(format, name string) (Layout, error) {
	for _, f := range Formats() {
		if f.String() != format {
			continue
		}
		if name != "" && !isIdentifier(name) {
			return Layout{}, fmt.Errorf("section name %q is not a C identifier, so linkers would make no __start_ and __stop_ symbols", name)
		}
		return Layout{f, name}, nil
	}
	var names []string
	for _, f := range Formats() {
		names = append(names, f.String())
	}
	return Layout{}, fmt.Errorf("unknown layout %q; known are %s", format, strings.Join(names, ", "))
}

// isIdentifier reports whether a name is one in C.
func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Section returns the name of the section that holds the records of a kind, or the
// pointers to them.
func (l Layout) Section(k arch.Kind) string {
	if l.Name == "" {
		return formats[l.Format].sections[k]
	}
	return formats[l.Format].prefix + l.Name + kindSuffixes[k]
}

// structures returns the name of the section of what records point to.
func (l Layout) structures() string {
	if l.Name == "" {
		return formats[l.Format].structures
	}
	return l.Name + "_structs"
}

// Size returns the length of a record in bytes, for words of the given size in bytes.
func (l Layout) Size(word int) int { return sizeOf(formats[l.Format].record, word) }

// IsRecordSection reports whether a section holds records in this layout, and
// of which kind. The flags tell layouts apart that share a name.
func (l Layout) IsRecordSection(sec *elfreloc.Section) (arch.Kind, bool) {
	for k := range arch.Kinds {
		if sec.Name != "" && sec.Name == l.Section(k) && sec.Flags&elf.SHF_WRITE != 0 == l.writable() {
			return k, true
		}
	}
	return 0, false
}

// All lists the layouts that derive from a name, the wanted one first.
func (l Layout) All() []Layout {
	formats := Formats()
	layouts := append(make([]Layout, 0, 2*len(formats)), l) // with room for Candidates to append
	for _, f := range formats {
		if f != l.Format {
			layouts = append(layouts, Layout{f, l.Name})
		}
	}
	return layouts
}

// Candidates returns the layouts that records may have where this one is asked for: all
// with its name, the wanted one first, and all that conversions make when they are not
// told otherwise.
func (l Layout) Candidates() []Layout {
	layouts := l.All()
	if l.Name != "" {
		layouts = append(layouts, Layout{}.All()...)
	}
	return layouts
}

// What a record looks like is said once, in the table of formats. Layout.Add writes
// it as ELF, internal/emit as assembly, and Layout.Read reads it.

// kindSuffixes are what follows a given name in the names of sections, by arch.Kind.
var kindSuffixes = [arch.Kinds]string{arch.Probe: "", arch.Enabled: "_isenabled"}

// formats is by Format.
var formats = [...]struct {
	name       string
	sections   [arch.Kinds]string // names of sections of records where none is given, "" for no such records
	prefix     string             // of a given name
	structures string             // the own name of the section that records point to, "" for none
	record     []Field
	structure  []Field // what a record points to, nil for none
}{
	Pairs: {
		name:     "pairs",
		sections: [arch.Kinds]string{arch.Probe: "sdt_instances_set", arch.Enabled: "sdt_isenabled_set"},
		record:   []Field{{To: ToProbe}, {To: ToSite}},
	},
	Relative: {
		name:     "relative",
		sections: [arch.Kinds]string{arch.Probe: "sdt_instances_rel", arch.Enabled: "sdt_isenabled_rel"},
		record:   []Field{{To: ToProbe, Distance: true}, {To: ToSite, Distance: true}},
	},
	FreeBSD: {
		name:       "freebsd",
		sections:   [arch.Kinds]string{arch.Probe: "set_sdt_instances_set", arch.Enabled: "set_sdt_isenabled_set"},
		prefix:     "set_",
		structures: "sdt_instances",
		record:     []Field{{To: ToStructure}},
		structure:  []Field{{To: ToProbe}, {To: ToSite}},
	},
	Tracepoints: {
		name:     "tracepoints",
		sections: [arch.Kinds]string{arch.Probe: "set_sdt_tracepoint_set", arch.Enabled: ""},
		record:   []Field{{To: ToProbe}, {To: ToSite}, {To: ToKernel}, {To: ToKernel}},
	},
}

// Referent is what a field refers to.
type Referent uint8

const (
	ToProbe     Referent = iota // the probe object
	ToSite                      // the instruction that is executed when the probe is reached
	ToStructure                 // the entry of the same number in the section before
	ToKernel                    // what the kernel that reads the records keeps there
)

// Field is a field of an entry: an address or a distance, and of what.
type Field struct {
	To Referent
	// Distance reports that the field is a signed 32-bit distance from itself.
	// Else it is an absolute address, of a word.
	Distance bool
}

// Size returns the length of a field in bytes, for words of the given size in bytes.
func (f Field) Size(word int) int {
	if f.Distance {
		return 4
	}
	return word
}

// Array describes a section that holds an entry for each of some records.
type Array struct {
	Name  string
	Flags elf.SectionFlag // without SHF_GROUP
	Align int             // bytes
	Entry []Field         // of each entry, without padding; not to be modified
	// Label is what the labels of entries begin with where they are written as
	// assembly; the entry's number follows. It is "" where nothing refers to them.
	Label string
}

// Entsize returns the length of an entry in bytes, for words of the given size in bytes.
func (a *Array) Entsize(word int) int { return sizeOf(a.Entry, word) }

func sizeOf(entry []Field, word int) int {
	size := 0
	for _, f := range entry {
		size += f.Size(word)
	}
	return size
}

// Arrays describes the sections that records of a kind are written to, for words
// of the given size in bytes. They are of type SHT_PROGBITS. The last holds the
// records; what these point to is in the one before.
func (l Layout) Arrays(k arch.Kind, word int) []Array {
	f := &formats[l.Format]
	var arrays []Array
	if f.structure != nil {
		arrays = append(arrays, describe(l.structures(), f.structure, fmt.Sprintf(".Lsdt_%d_", k), word))
	}
	return append(arrays, describe(l.Section(k), f.record, "", word))
}

func describe(name string, entry []Field, label string, word int) Array {
	return Array{Name: name, Flags: flagsOf(entry), Align: entry[0].Size(word), Entry: entry, Label: label}
}

// writable reports whether records stand in a section that may be written to.
func (l Layout) writable() bool { return flagsOf(formats[l.Format].record)&elf.SHF_WRITE != 0 }

// flagsOf returns the flags of a section of entries: a loader relocates addresses, so their section is writable;
// distances within a module are constant.
func flagsOf(entry []Field) elf.SectionFlag {
	if entry[0].Distance {
		return elf.SHF_ALLOC
	}
	return elf.SHF_ALLOC | elf.SHF_WRITE
}
