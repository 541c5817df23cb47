package x86

import (
	"bytes"

	"sdtconvert/arch"
)

// Disable chooses by length among the forms of the site's kind and form.
func (m *Mode) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	if s.Form == arch.Nop {
		return m.disableNop(s, k, env)
	}
	if env.SemaphoreBytes != 0 && k == arch.Enabled {
		// It goes to the helper that loads the semaphore, as it went to the stub.
		c := arch.Change{Site: s, RecordedOffset: s.Offset, Target: arch.TargetTestHelper, Reloc: m.Distance(s.Offset + 1)}
		switch {
		case s.Form == arch.CondTail && len(s.Code) == longLen:
			c.New = m.branch(s.Code[0], s.Code[1]) // jcc rel32
			c.Reloc.Offset++
		case s.Form == arch.Tail && (len(s.Code) == branchLen || len(s.Code) == longLen):
			c.New = m.jump(len(s.Code))
		case s.Form == arch.Call && len(s.Code) == branchLen:
			c.New = m.branch(OpCall) // call rel32
		case s.Form == arch.Call && len(s.Code) == longLen:
			c.New = m.branch(prefixAddr, OpCall) // addr32 call rel32; addr16 in 32-bit mode
			c.Reloc.Offset++
		default:
			return arch.Change{}, refuseLength(s, arch.Enabled)
		}
		return c, nil
	}
	if env.ReturnThunk && s.Form != arch.Call {
		return m.disableThunk(s, k, env)
	}
	forms := &m.disabled().plain[k]
	if env.Armable {
		forms = &m.disabled().armable[k]
	}
	for _, code := range forms[s.Form] {
		if len(code) != len(s.Code) {
			continue
		}
		c := arch.Change{Site: s, New: code, RecordedOffset: s.Offset}
		if s.Form == arch.CondTail {
			c.New = bytes.Clone(code)
			c.New[0] = Inverted(s.Code)
			c.RecordedOffset += CondSkip
		}
		return c, nil
	}
	return arch.Change{}, refuseLength(s, k)
}

// Inverted returns the opcode of the short jcc on the inverse of the condition of jcc
// rel32: the condition is the low nibble, and its lowest bit inverts it.
func Inverted(jcc []byte) byte { return OpJccShort | (jcc[1]&0x0f ^ 1) }

// refuseLength refuses a site as long as none is.
func refuseLength(s arch.Site, k arch.Kind) error {
	return arch.RefuseSite(k, s.Form, "", " of %d bytes", len(s.Code))
}

// disableNop leaves a NOP as it is, or makes it armable.
func (m *Mode) disableNop(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	if k != arch.Probe {
		return arch.Change{}, arch.RefuseNop(k)
	}
	code := s.Code
	if env.Armable && len(code) == branchLen {
		code = m.disabled().armable[arch.Probe].length(arch.Call, branchLen)
	}
	return arch.Change{Site: s, New: bytes.Clone(code), RecordedOffset: s.Offset}, nil
}

// jump returns jmp rel32, followed by int3 if there is room.
func (m *Mode) jump(length int) []byte { return pad(length, m.branch(OpJmp)...) }

// disableThunk keeps a jump a jump: to the return thunk, or to a helper that
// sets the result first. A bare ret would undo the mitigation. Jumps are emulated
// as nops of one byte are, so these forms are armable as they are.
func (m *Mode) disableThunk(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	if s.Form == arch.CondTail {
		return m.disableCondThunk(s, k, env)
	}
	if len(s.Code) != branchLen && len(s.Code) != longLen {
		return arch.Change{}, refuseLength(s, k)
	}
	c := arch.Change{Site: s, New: m.jump(len(s.Code)), RecordedOffset: s.Offset, Target: arch.TargetThunk, Reloc: m.Distance(s.Offset + 1)}
	if k == arch.Enabled {
		c.Target = arch.TargetHelper
	}
	return c, nil
}

// disableCondThunk has no room for an inverted jump and a jump to the thunk. But
// code that returns through the thunk holds such jumps, and where one is near, a
// short jump to it returns just as well: at both places the stack is that of a
// return.
func (m *Mode) disableCondThunk(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	code := bytes.Clone(condThunk[k])
	if len(s.Code) != len(code) {
		return arch.Change{}, refuseLength(s, k)
	}
	at := bytes.IndexByte(code, OpJmpShort) + 1
	near := m.nearestReturn(env, s.Offset+uint64(at)+1)
	if near == nil {
		return arch.Change{}, arch.Refuse("compile with -fno-optimize-sibling-calls",
			"a conditional tail call in code that returns through a thunk, and no return is near")
	}
	code[0] = Inverted(s.Code)
	code[at] = byte(*near)
	return arch.Change{Site: s, New: code, RecordedOffset: s.Offset + CondSkip}, nil
}

// nearestReturn finds the closest jump to the return thunk that a short jump
// ending at offset end reaches, and returns the distance.
func (m *Mode) nearestReturn(env arch.Context, end uint64) *int8 {
	var near *int8
	for _, r := range env.Returns {
		jmp := env.Text.At(r.Offset-1, branchLen)
		if jmp == nil || jmp[0] != OpJmp || m.checkAddend(jmp, r, EndAddend) != nil {
			continue
		}
		distance := int64(r.Offset-1) - int64(end)
		if d := int8(distance); int64(d) == distance && (near == nil || abs(d) < abs(*near)) {
			near = &d
		}
	}
	return near
}

func abs(d int8) int { return max(int(d), -int(d)) }
