package s390x

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// llhrl loads 2 bytes, as whose upper bits zero is loaded: llhrl %r2, semaphore. It is of
// the general-instructions extension, which z10 brought.
var llhrl = []byte{0xc4, 0x22, 0x00, 0x00, 0x00, 0x00}

// test makes a call load the semaphore itself: the load is as long as the call. A tail
// call has to return too; it goes to the helper, as it went to the stub.
func test(s arch.Site, condition byte) arch.Change {
	if s.Form != arch.Call {
		return jump(s, condition, arch.TargetTestHelper)
	}
	return arch.Change{
		Site: s, New: bytes.Clone(llhrl), RecordedOffset: s.Offset, Target: arch.TargetSemaphore,
		Reloc: elfreloc.Relocation{Offset: s.Offset + fieldAt, Type: uint32(elf.R_390_PC32DBL), Addend: addend},
	}
}

// isTest reports whether code is a load as test makes it of a call.
func isTest(code []byte) bool { return bytes.Equal(code[:fieldAt], llhrl[:fieldAt]) }

// LoadedSemaphore reads the load of a site, with which a helper begins too.
func (Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	code := t.At(at, siteLen)
	if code == nil || !isTest(code) {
		return 0, false
	}
	return target(code, at), true
}
