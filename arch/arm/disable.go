package arm

import (
	"bytes"
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// The disabled forms, by their assembly. Those of A32 have the condition of the site in
// their upper 4 bits, so that they are not executed where it was not: what stands there
// when a tracer arms them is not either (DDI 0406C, A8.3). Those of Thumb do the same in an
// IT block and behind it, where the processor has what instructions depend on.
const (
	nop    = 0xe320f000 // nop
	oldNop = 0xe1a00000 // mov r0, r0, of all processors
	ret    = 0xe12fff1e // bx lr
	zero   = 0xe3a00000 // mov r0, #0
	bA32   = 0xeafffffe // b helper
	blA32  = 0xebfffffe // bl helper

	wideNop = 0xf3af8000 // nop.w
	zeroT   = 0xf04f0000 // mov.w r0, #0: it leaves the flags
	bT      = 0xf7ffbffe // b.w helper
	blT     = 0xf7fffffe // bl helper

	nopT    = 0xbf00 // nop
	oldNopT = 0x46c0 // mov r8, r8, of all processors
	retT    = 0x4770 // bx lr
	movsT   = 0x2000 // movs r0, #0
	condT   = 0xd000 // bcc.n over: the instruction behind the next
	trapT   = 0xde01 // udf #1
)

// Of Thumb, two instructions of 2 bytes.
const (
	retNop  = retT<<16 | nopT  // bx lr; nop
	zeroRet = movsT<<16 | retT // movs r0, #0; bx lr
	condRet = condT<<16 | retT // bcc.n over; bx lr; over:
)

// anyCondition are the bits of an instruction of A32 without the condition.
const anyCondition = 0x0fffffff

// condSkip is the length of the branch before the return that is executed only when the
// probe is reached.
const condSkip = halfword

// Disable replaces the one instruction of the site.
func (m Machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	c := arch.Change{Site: s, RecordedOffset: s.Offset}
	switch {
	case len(s.Code) != insnLen:
		return arch.Change{}, arch.RefuseSite(k, s.Form, "", " of %d bytes", len(s.Code))
	case s.Form == arch.Nop && k != arch.Probe:
		return arch.Change{}, arch.RefuseNop(k)
	case s.Form == arch.Nop:
		c.New = bytes.Clone(s.Code)
		return c, nil
	case k == arch.Enabled && env.SemaphoreBytes != 0 && m.order.beforeT2(env.Text.Attributes) != "":
		return arch.Change{}, arch.Refuse(fixOld, "an is-enabled test of a semaphore, for %s (.ARM.attributes, Tag_CPU_arch), which has no movw", m.order.beforeT2(env.Text.Attributes))
	}
	if b, ok := branchThumb(m.order.readThumb(s.Code)); ok && b.form == s.Form && b.distance == -aheadThumb {
		return m.disableThumb(c, k, env)
	}
	return m.disableA32(c, k, env)
}

// disableA32 keeps the condition.
func (m Machine) disableA32(c arch.Change, k arch.Kind, env arch.Context) (arch.Change, error) {
	cond := m.order.readA32(c.Site.Code) &^ anyCondition
	if cond == never<<28 { // blx
		cond = always << 28
	}
	call := c.Site.Form == arch.Call
	var insn uint32
	switch {
	case k == arch.Enabled && (env.SemaphoreBytes != 0 || !call):
		c.Target, c.Reloc = helper(env), elfreloc.Relocation{Offset: c.Site.Offset, Type: uint32(elf.R_ARM_JUMP24), Implicit: true}
		if insn = bA32; call {
			insn = blA32
			if cond == always<<28 {
				c.Reloc.Type = uint32(elf.R_ARM_CALL)
			}
		}
	case k == arch.Enabled:
		insn = zero
	case !call:
		insn = ret
	case m.order.beforeT2(env.Text.Attributes) != "":
		insn = oldNop
	default:
		insn = nop
	}
	c.New = m.order.a32(cond | insn&anyCondition)
	return c, nil
}

func (m Machine) disableThumb(c arch.Change, k arch.Kind, env arch.Context) (arch.Change, error) {
	jump := func(insn, typ uint32) {
		c.New, c.Target = m.order.thumb(insn), helper(env)
		c.Reloc = elfreloc.Relocation{Offset: c.Site.Offset, Type: typ, Implicit: true}
	}
	switch form := c.Site.Form; {
	case form == arch.Call && k == arch.Probe:
		c.New = m.order.thumb(wideNop)
	case form == arch.Call && env.SemaphoreBytes != 0:
		jump(blT, uint32(elf.R_ARM_THM_PC22))
	case form == arch.Call:
		c.New = m.order.thumb(zeroT)
	case form == arch.Tail && k == arch.Probe:
		c.New = m.order.thumb(retNop)
	case form == arch.Tail && (env.SemaphoreBytes != 0 || m.mayBeInIT(env.Text, c.Site.Offset)):
		jump(bT, uint32(elf.R_ARM_THM_JUMP24))
	case form == arch.Tail:
		c.New = m.order.thumb(zeroRet)
	case k == arch.Probe:
		cond := m.order.readThumb(c.Site.Code) >> 22 & 0xf
		c.New = m.order.thumb(condRet | (cond^1)<<24) // the lowest bit inverts it
		c.RecordedOffset += condSkip
	default:
		// Not the helper: mold 1.10 links such a branch to A32 without what changes the
		// instruction set, and gold says that it cannot.
		return arch.Change{}, arch.RefuseSite(k, c.Site.Form, "compile with -fno-optimize-sibling-calls, or write it and b.w", " of Thumb")
	}
	return c, nil
}

// helper returns the one that an is-enabled test goes to.
func helper(env arch.Context) arch.Target {
	if env.SemaphoreBytes != 0 {
		return arch.TargetTestHelper
	}
	return arch.TargetHelper
}

// itReach is how far before the last instruction of an IT block the IT instruction may be: in
// front of three instructions of 4 bytes.
const itReach = 3*insnLen + halfword

// mayBeInIT reports whether what is at an offset may be in an IT block (A8.8.54): whether a
// halfword near before it is like the instruction that begins one. There two instructions do
// not replace one.
func (m Machine) mayBeInIT(t arch.Text, off uint64) bool {
	for back := uint64(halfword); back <= min(itReach, off); back += halfword {
		if b := t.At(off-back, halfword); b != nil {
			if insn := m.order.code().Uint16(b); insn>>8 == 0xbf && insn&0xf != 0 {
				return true
			}
		}
	}
	return false
}

// Disabled compares what is at a record with the forms of its kind, of both instruction
// sets. The conditional tail call is first, which ends as a tail call begins.
func (m Machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if k == arch.Probe && record >= condSkip && record%halfword == 0 {
		code := t.At(record-condSkip, insnLen)
		if code != nil && isCondRet(m.order.readThumb(code)) {
			return arch.Site{Offset: record - condSkip, Form: arch.CondTail, Code: code}, true
		}
	}
	code := t.At(record, insnLen)
	if code == nil || record%halfword != 0 {
		return arch.Site{}, false
	}
	site := arch.Site{Offset: record, Code: code}
	var ok bool
	if site.Form, ok = disabledThumb(m.order.readThumb(code), k); ok {
		return site, true
	}
	if record%insnLen == 0 {
		if site.Form, ok = disabledA32(m.order.readA32(code), k); ok {
			return site, true
		}
	}
	if k == arch.Enabled {
		b, _, found := m.find(t, record)
		if site.Form, ok = b.form, found; ok {
			return site, true
		}
	}
	return arch.Site{}, false
}

// isCondRet recognises the form of a conditional tail call, of any condition.
func isCondRet(insn uint32) bool { return insn&^0x0f000000 == condRet && insn>>24&0xf < always }

func disabledThumb(insn uint32, k arch.Kind) (arch.Form, bool) {
	switch {
	case k == arch.Probe && insn == wideNop, k == arch.Enabled && insn == zeroT:
		return arch.Call, true
	case k == arch.Probe && insn == retNop, k == arch.Enabled && insn == zeroRet:
		return arch.Tail, true
	}
	return 0, false
}

func disabledA32(insn uint32, k arch.Kind) (arch.Form, bool) {
	unconditional := insn & anyCondition
	switch {
	case insn>>28 == never:
	case k == arch.Probe && (unconditional == nop&anyCondition || unconditional == oldNop&anyCondition), k == arch.Enabled && unconditional == zero&anyCondition:
		return arch.Call, true
	case k == arch.Probe && insn == ret:
		return arch.Tail, true
	case k == arch.Probe && unconditional == ret&anyCondition:
		return arch.CondTail, true
	}
	return 0, false
}
