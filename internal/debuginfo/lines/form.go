package lines

import (
	"errors"
	"fmt"

	"sdtconvert/internal/debuginfo/cursor"
)

// The forms of values (section 7.5.6), and those of GNU and LLVM before they
// were standard.
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
	formLLVMAddrxOff  = 0x2001
)

// formSize returns the number of bytes of a value, -1 when it varies.
func (p params) formSize(form uint32) int {
	offset := 4
	if p.wide {
		offset = 8
	}
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formRef1, formFlag, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return offset
	case formAddr:
		return int(p.addrSize)
	case formRefAddr:
		if p.version <= 2 {
			return int(p.addrSize) // DWARF 2, section 7.5.4
		}
		return offset
	}
	return -1
}

// value is what an attribute holds: a number, an index or an offset in u, or
// bytes.
type value struct {
	form uint32 // 0 without such an attribute
	u    uint64
	b    []byte // of blocks, strings in place, and DW_FORM_data16
}

// errNonsense is the fault of values that a unit or a table cannot have. Messages
// name the unit or the table.
var errNonsense = errors.New("makes no sense")

// value reads a value. A form that is not known is a fault of c.
func (p params) value(c *cursor.Cursor, at attr) value {
	v := value{form: at.form}
	if v.form == formIndirect {
		if v.form = clamp(c.Uleb()); v.form == formIndirect || v.form == formImplicitConst {
			c.Fail(errNonsense)
			return v
		}
	}
	switch v.form {
	case formFlagPresent:
		v.u = 1
	case formImplicitConst:
		v.u = uint64(at.implicit)
	case formData16:
		v.b = c.Take(16)
	case formString:
		v.b = c.Text()
	case formBlock1:
		v.b = c.Take(uint64(c.U8()))
	case formBlock2:
		v.b = c.Take(uint64(c.U16()))
	case formBlock4:
		v.b = c.Take(uint64(c.U32()))
	case formBlock, formExprloc:
		v.b = c.Take(c.Uleb())
	case formSdata:
		v.u = uint64(c.Sleb())
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.u = c.Uleb()
	case formLLVMAddrxOff:
		v.u = c.Uleb()
		c.Skip(4)
	default:
		v.u = c.Uint(p.formSize(v.form)) // no integer has the size of a form that is not known
	}
	return v
}

// skipValue skips a value, and is quick about those that most entries have.
func (p params) skipValue(c *cursor.Cursor, at attr) {
	if n := p.formSize(at.form); n >= 0 {
		c.Skip(uint64(n))
		return
	}
	switch at.form {
	case formSdata, formUdata:
		c.SkipLEB() // of an unused constant any size will do
	default:
		p.value(c, at)
	}
}

// text returns a value that is a string of a unit; "" when it is none, or is in
// a file that is not read: that of dwz.
func (t *Table) text(u *unit, v value) (string, error) {
	switch v.form {
	case formString:
		return string(v.b), nil
	case formStrp:
		return t.sections.text(debugStr, v.u)
	case formLineStrp:
		return t.sections.text(debugLineStr, v.u)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		off, err := t.indexed(debugStrOffsets, u.strBase, v.u, u.offsetSize())
		if err != nil {
			return "", err
		}
		return t.sections.text(debugStr, off)
	}
	return "", nil
}

// address returns a value that is an address.
func (t *Table) addressOf(u *unit, v value) (uint64, error) {
	switch v.form {
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return t.indexed(debugAddr, u.addrBase, v.u, int(u.addrSize))
	}
	return v.u, nil
}

// indexed reads entry i, of size bytes, of a table at offset base.
func (t *Table) indexed(k int, base, i uint64, size int) (uint64, error) {
	data, err := t.sections.all(k)
	if err != nil {
		return 0, err
	}
	n := uint64(len(data))
	if base > n || i >= (n-base)/uint64(size) {
		return 0, fmt.Errorf("%s+%#x: no entry %d", t.sections.name(k), base, i)
	}
	c := t.cursor(data[base+i*uint64(size):])
	return c.Uint(size), nil
}
