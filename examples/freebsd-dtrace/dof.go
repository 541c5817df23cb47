//go:build freebsd && (amd64 || arm64)

package main

// What the kernel is told to enable: DTrace's object format (DOF), version 2, with the
// one program `PROBES { trace(arg0); ... }` in DTrace's instructions.

import "encoding/binary"

// Types of sections.
const (
	secECB       = 3
	secProbe     = 4
	secActions   = 5
	secDIFHeader = 6
	secDIF       = 7
	secStrings   = 8
	secOptions   = 14
)

const (
	sizeHeaderDOF = 64
	sizeSection   = 32
	none          = ^uint32(0) // the index of no section
	actTrace      = 1          // DTRACEACT_DIFEXPR
	optBufferSize = 0          // DTRACEOPT_BUFSIZE
	opLoad, opRet = 41, 35     // ldgs var, %r; ret %r
	varArg0       = 0x0106
	maxArguments  = 10
)

// dofFile collects sections.
type dofFile struct {
	types  []uint32
	bodies [][]byte
	entry  []uint32 // sizes of the entries of tables
}

// add adds a section, and returns its index.
func (f *dofFile) add(typ, entry uint32, body []byte) uint32 {
	f.types, f.entry, f.bodies = append(f.types, typ), append(f.entry, entry), append(f.bodies, body)
	return uint32(len(f.types) - 1)
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// enabling makes the file that enables patterns, and has arguments recorded. At least
// one is, as a record has to hold something.
func enabling(patterns []string, args int) []byte {
	f := new(dofFile)
	strings := []byte{0}
	var places [][4]uint32
	for _, p := range patterns {
		var at [4]uint32
		for i, part := range split(p) {
			if part != "" {
				at[i] = uint32(len(strings))
				strings = append(append(strings, part...), 0)
			}
		}
		places = append(places, at)
	}
	strtab := f.add(secStrings, 0, strings)
	var actions []byte
	for i := range uint32(max(args, 1)) {
		code := f.add(secDIF, 4, words(opLoad<<24|(varArg0+i)<<8|1, opRet<<24|1))
		// The type of the result: of CTF, by value, 8 bytes.
		difo := f.add(secDIFHeader, 0, words(0, 8, code))
		actions = append(actions, words(difo, none, actTrace, 0, 0, 0, 0, 0)...)
	}
	acts := f.add(secActions, 32, actions)
	for _, at := range places {
		desc := f.add(secProbe, 0, words(strtab, at[0], at[1], at[2], at[3], 0))
		f.add(secECB, 0, words(desc, none, acts, 0, 0, 0))
	}
	f.add(secOptions, 16, words(optBufferSize, none, bufferSize, 0))
	return f.bytes()
}

// bytes lays the file out: the header, the headers of the sections, and these.
func (f *dofFile) bytes() []byte {
	var headers, data []byte
	start := sizeHeaderDOF + sizeSection*len(f.types)
	for i, body := range f.bodies {
		for (start+len(data))%8 != 0 {
			data = append(data, 0)
		}
		align := uint32(8)
		if f.types[i] == secStrings {
			align = 1
		} else if f.types[i] == secProbe || f.types[i] == secDIF || f.types[i] == secDIFHeader {
			align = 4
		}
		headers = append(headers, words(f.types[i], align, 1, f.entry[i])...)
		headers = binary.LittleEndian.AppendUint64(headers, uint64(start+len(data)))
		headers = binary.LittleEndian.AppendUint64(headers, uint64(len(body)))
		data = append(data, body...)
	}
	size := uint64(start + len(data))
	// 64-bit, little-endian, version 2; DIF version 2, and registers of either kind.
	file := append([]byte("\x7fDOF"), 2, 1, 2, 2, 8, 8, 0, 0, 0, 0, 0, 0)
	file = append(file, words(0, sizeHeaderDOF, sizeSection, uint32(len(f.types)))...)
	file = binary.LittleEndian.AppendUint64(file, sizeHeaderDOF)
	file = binary.LittleEndian.AppendUint64(file, size)
	file = binary.LittleEndian.AppendUint64(file, size)
	file = binary.LittleEndian.AppendUint64(file, 0)
	return append(append(file, headers...), data...)
}
