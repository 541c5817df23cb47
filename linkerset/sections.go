package linkerset

import (
	"debug/elf"

	"sdtconvert/arch"
)

// What a record looks like is said once, in the table of formats. Layout.Add writes
// it as ELF, internal/emit/records as assembly, and Layout.Read reads it.

// formats is by Format.
var formats = [...]struct {
	name       string
	sections   [2]string // of records, by kind: their own names
	structures string    // the section's own name, "" where nothing points to any
	prefix     string    // of a section's name that is given
	record     []Field
	structure  []Field // what a record points to, nil for none
}{
	Pairs: {
		name:     "pairs",
		sections: [...]string{arch.Probe: "sdt_instances_set", arch.Enabled: "sdt_isenabled_set"},
		record:   []Field{{To: ToProbe}, {To: ToSite}},
	},
	Relative: {
		name:     "relative",
		sections: [...]string{arch.Probe: "sdt_instances_rel", arch.Enabled: "sdt_isenabled_rel"},
		record:   []Field{{To: ToProbe, Distance: true}, {To: ToSite, Distance: true}},
	},
	FreeBSD: {
		name:       "freebsd",
		sections:   [...]string{arch.Probe: "set_sdt_instances_set", arch.Enabled: "set_sdt_isenabled_set"},
		structures: "sdt_instances",
		prefix:     "set_",
		record:     []Field{{To: ToStructure}},
		structure:  []Field{{To: ToProbe}, {To: ToSite}},
	},
	Tracepoints: {
		name:     "tracepoints",
		sections: [...]string{arch.Probe: "set_sdt_tracepoint_set", arch.Enabled: ""},
		record:   []Field{{To: ToProbe}, {To: ToSite}, {To: ToReader}, {To: ToReader}},
	},
}

// Referent is what a field refers to.
type Referent uint8

const (
	ToProbe     Referent = iota // the probe object
	ToSite                      // the instruction that is executed when the probe is reached
	ToStructure                 // the entry of the same number in the section before
	ToReader                    // what the kernel that reads the records keeps there
)

// Field is a field of an entry: an address or a distance, and of what.
type Field struct {
	To Referent
	// Distance tells that the field is a signed 32-bit distance from itself.
	// Else it is an absolute address, of a word.
	Distance bool
}

// Size is the length of a field in bytes, for words of the given size in bytes.
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

// Entsize is the length of an entry in bytes, for words of the given size in bytes.
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
		label := [...]string{arch.Probe: ".Lsdt_0_", arch.Enabled: ".Lsdt_1_"}[k]
		all = append(all, describe(l.structures(), f.structure, label, word))
	}
	return append(all, describe(l.Section(k), f.record, "", word))
}

func describe(name string, entry []Field, label string, word int) Array {
	return Array{Name: name, Flags: flagsOf(entry), Align: entry[0].Size(word), Entry: entry, Label: label}
}

// flagsOf are those of a section of entries: a loader relocates addresses in their
// place, and never distances within a module.
func flagsOf(entry []Field) elf.SectionFlag {
	if entry[0].Distance {
		return elf.SHF_ALLOC
	}
	return elf.SHF_ALLOC | elf.SHF_WRITE
}

// writable reports whether records stand in a section that may be written to.
func (l Layout) writable() bool { return flagsOf(formats[l.Format].record)&elf.SHF_WRITE != 0 }
