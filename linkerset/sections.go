package linkerset

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
)

// What a record looks like is said once, in the table of formats. Layout.Add writes
// it as ELF, internal/emit/records as assembly, and Layout.Read reads it.

// kinds is by arch.Kind, and has what makes the names of sections of its records: what is
// between the prefix and the suffix of a format, and what follows a given name.
var kinds = [arch.Kinds]struct{ name, given string }{
	arch.Probe:   {"sdt_instances", ""},
	arch.Enabled: {"sdt_isenabled", "_isenabled"},
}

// formats is by Format.
var formats = [...]struct {
	name           string
	prefix, suffix string // of a section's own name; a given name gets the prefix alone
	probes         string // the section of probe calls, if there are no other records
	structures     string // the own name of the section that records point to, "" for none
	record         []Field
	structure      []Field // what a record points to, nil for none
}{
	Pairs: {
		name:   "pairs",
		suffix: "_set",
		record: []Field{{To: ToProbe}, {To: ToSite}},
	},
	Relative: {
		name:   "relative",
		suffix: "_rel",
		record: []Field{{To: ToProbe, Distance: true}, {To: ToSite, Distance: true}},
	},
	FreeBSD: {
		name:       "freebsd",
		prefix:     "set_",
		suffix:     "_set",
		structures: "sdt_instances",
		record:     []Field{{To: ToStructure}},
		structure:  []Field{{To: ToProbe}, {To: ToSite}},
	},
	Tracepoints: {
		name:   "tracepoints",
		probes: "set_sdt_tracepoint_set",
		record: []Field{{To: ToProbe}, {To: ToSite}, {To: ToKernel}, {To: ToKernel}},
	},
}

// ownSections are the own names of sections of records, by Format and arch.Kind.
var ownSections = makeOwnSections()

func makeOwnSections() (names [len(formats)][arch.Kinds]string) {
	for i := range formats {
		f := &formats[i]
		if f.probes != "" {
			names[i][arch.Probe] = f.probes
			continue
		}
		for k := range arch.Kinds {
			names[i][k] = f.prefix + kinds[k].name + f.suffix
		}
	}
	return names
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
	var all []Array
	if f.structure != nil {
		all = append(all, describe(l.structures(), f.structure, fmt.Sprintf(".Lsdt_%d_", k), word))
	}
	return append(all, describe(l.Section(k), f.record, "", word))
}

func describe(name string, entry []Field, label string, word int) Array {
	return Array{Name: name, Flags: flagsOf(entry), Align: entry[0].Size(word), Entry: entry, Label: label}
}

// writable reports whether records stand in a section that may be written to.
func (l Layout) writable() bool { return flagsOf(formats[l.Format].record)&elf.SHF_WRITE != 0 }

// flagsOf returns those of a section of entries: a loader relocates addresses in their
// place, and never distances within a module.
func flagsOf(entry []Field) elf.SectionFlag {
	if entry[0].Distance {
		return elf.SHF_ALLOC
	}
	return elf.SHF_ALLOC | elf.SHF_WRITE
}
