package amd64

// Calls through registers. An instruction with the relocation loads the stub's address,
// and a call or a jump through a register comes later, in another place, or in several:
//
//   - without a procedure linkage table (-fno-plt, and what rustc makes by default), a mov
//     from the stub's slot of the global offset table;
//   - in the large code model (x86-64 psABI, section 3.5), a movabs. Between it and the
//     call the global offset table's address is added, or read through: its entry 0 then,
//     which holds the address of _DYNAMIC (section 5.2).
//
// A function's loads of one stub are followed together, along all ways through it
// (function.go). All their calls are disabled if each executes with the stub's address
// alone, and nothing else uses the registers; or none is. A mov is overwritten by a nop. A
// movabs stays, and loads zero, from which the offset table's address makes what no one
// uses. The calls of is-enabled tests are too short to load a semaphore. A mov becomes the
// load of a helper's address that does (enabled.go), and the calls stay.

import (
	"bytes"
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

const (
	movabsLen   = 10 // REX.W b8+r imm64
	movabsField = 2  // the offset of its imm64
	movLen      = 7  // REX.W 8b /r disp32
	movField    = 3  // the offset of its disp32
)

// nop7 takes the place of a mov.
var nop7 = []byte{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00} // nopl 0(%rax)

// Bounds of what is followed. Of a function each instruction is kept, and looked at some
// times for each stub that it loads.
const (
	maxFunction = 1 << 18 // bytes
	maxWork     = 1 << 23 // instructions of the functions of a section, times the stubs of each
)

// Follows reports whether a type loads the address of a function.
func (machine) Follows(typ uint32) bool { return valueOf(typ) != nothing }

// valueOf returns what the field of a relocation of a type holds of a symbol.
func valueOf(typ uint32) value {
	switch elf.R_X86_64(typ) {
	case elf.R_X86_64_64, elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		return address
	case elf.R_X86_64_PLTOFF64, elf.R_X86_64_GOTOFF64:
		return distance
	case elf.R_X86_64_GOT64:
		return slot
	}
	return nothing
}

// Follow groups what leads to each section; it reads no text.
func (machine) Follow(c arch.ObjectCode) func(int, []arch.StubLoad) ([]arch.Followed, error) {
	return newFlow(c).follow
}

// load is an instruction that loads something of a stub into a register.
type load struct {
	arch.Site
	to    reg
	what  value
	reloc int // the index of its relocation
	stub  int
}

// loadOf returns the load that a relocation belongs to, or why there is none.
func loadOf(t arch.Text, l arch.StubLoad) (load, *arch.Refusal) {
	r, what := l.Relocation, valueOf(l.Type)
	if what == address && elf.R_X86_64(r.Type) != elf.R_X86_64_64 {
		b := t.At(r.Offset-movField, movLen)
		if r.Offset < movField || b == nil || b[0]&^4 != 0x48 || b[1] != 0x8b || b[2]&0xc7 != 5 {
			return load{}, refuseLoad(t, r, "")
		}
		if r.Addend != x86.EndAddend || r.Implicit {
			return load{}, arch.Refuse(arch.FixDirect, "a call or jump to the stub%+d", r.Addend-x86.EndAddend)
		}
		return load{Site: arch.Site{Offset: r.Offset - movField, GOT: true, Register: true, Code: b}, to: reg(b[0]&4)<<1 | reg(b[2]>>3&7), what: what}, nil
	}
	b := t.At(r.Offset-movabsField, movabsLen)
	switch {
	case r.Offset < movabsField || b == nil || r.Implicit || b[0]&^1 != 0x48 || b[1]&^7 != 0xb8,
		!bytes.Equal(b[movabsField:], make([]byte, 8)): // which it would load when the relocation is gone
		return load{}, refuseLoad(t, r, "")
	case r.Addend != 0:
		return load{}, arch.Refuse(arch.FixDirect, "a call or jump to the stub%+d", r.Addend)
	}
	return load{Site: arch.Site{Offset: r.Offset - movabsField, Code: b}, to: reg(b[0]&1)<<3 | reg(b[1]&7), what: what}, nil
}

// refuseLoad says what was met, and why it is not followed.
func refuseLoad(t arch.Text, r elfreloc.Relocation, why string) *arch.Refusal {
	if why != "" {
		why = ", " + why
	}
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_64:
		return arch.RefuseAddress(fixLarge+"; "+arch.FixDirect, "an absolute address%s", why)
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		return arch.RefuseAddress(fixNoPLT+"; "+arch.FixDirect, "a load of the stub's address from the GOT, %s%s", x86.Before(t, r), why)
	}
	return arch.RefuseAddress(fixLarge, "a call through a register, as the large code model makes%s", why)
}

// follow goes through the functions that hold loads.
func (f *flow) follow(section int, loads []arch.StubLoad) ([]arch.Followed, error) {
	if err := f.prepare(section); err != nil {
		return nil, err
	}
	out := make([]arch.Followed, len(loads))
	var found []load
	for i, l := range loads {
		ld, refused := loadOf(f.text, l)
		ld.reloc, ld.stub = i, l.Stub
		out[i] = arch.Followed{Load: ld.Site, Refused: refused}
		if refused == nil {
			found = append(found, ld)
			if ld.GOT {
				out[i].New = nop7
			}
		}
	}
	for len(found) > 0 {
		start, end := f.around(found[0].Offset)
		n := 1
		for n < len(found) && found[n].Offset < end {
			n++
		}
		f.followFunction(start, end, found[:n], loads, out)
		found = found[n:]
	}
	return out, nil
}

// around returns the function that holds an offset.
func (f *flow) around(off uint64) (start, end uint64) {
	i, begins := slices.BinarySearch(f.starts, off)
	if !begins {
		i--
	}
	return f.starts[i], f.end(i)
}

// followFunction follows the loads of one function, those of each stub together.
func (f *flow) followFunction(start, end uint64, functionLoads []load, relocs []arch.StubLoad, out []arch.Followed) {
	slices.SortStableFunc(functionLoads, func(a, b load) int { return a.stub - b.stub })
	fn, why := f.decode(start, end)
	for len(functionLoads) > 0 {
		n := 1
		for n < len(functionLoads) && functionLoads[n].stub == functionLoads[0].stub {
			n++
		}
		loads := functionLoads[:n]
		functionLoads = functionLoads[n:]
		var sites []arch.Site
		if f.work += len(fn.insts); why == "" && f.work > maxWork {
			why = "in one of too many functions"
		}
		refusal := why
		if refusal == "" {
			sites, refusal = fn.followLoads(loads)
		}
		for _, l := range loads {
			if refusal != "" {
				out[l.reloc].Refused = refuseLoad(f.text, relocs[l.reloc].Relocation, refusal)
			}
		}
		out[loads[0].reloc].Sites = sites
	}
}

// hasPlainOpcode recognises a call or jump without a prefix but REX.
func hasPlainOpcode(code []byte) bool {
	return code[0] == x86.OpGroup || code[0]&0xf0 == 0x40 && code[1] == x86.OpGroup
}
