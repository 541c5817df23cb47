package debuginfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// repeat makes n bytes and then others.
func repeat(b byte, n int, then ...byte) []byte {
	return append(slices.Repeat([]byte{b}, n), then...)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Integers of each size are read in both orders, and not from fewer bytes.
func TestIntegers(t *testing.T) {
	data := []byte{0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8}
	for _, c := range []struct {
		n           int
		little, big uint64
		fault       string // with a byte less
	}{
		{1, 0x81, 0x81, "0x1 bytes, 0x0 are left"},
		{2, 0x9281, 0x8192, "0x2 bytes, 0x1 are left"},
		{4, 0xb4a39281, 0x8192a3b4, "0x4 bytes, 0x3 are left"},
		{8, 0xf8e7d6c5b4a39281, 0x8192a3b4c5d6e7f8, "0x8 bytes, 0x7 are left"},
	} {
		for order, want := range map[bool]uint64{false: c.little, true: c.big} {
			r := cursor{data: data, big: order}
			if got := r.uint(c.n); got != want || r.bad() || r.at != c.n {
				t.Errorf("%d bytes, big-endian %v: %#x at %d and %v, want %#x", c.n, order, got, r.at, r.fault(), want)
			}
			r = cursor{data: data[:c.n-1], big: order}
			if got := r.uint(c.n); got != 0 || message(r.fault()) != c.fault || r.at != 0 {
				t.Errorf("%d bytes of %d: %#x at %d and %v", c.n, c.n-1, got, r.at, r.fault())
			}
		}
	}
	for _, n := range []int{-1, 0, 3, 5, 9} {
		r := cursor{data: data}
		if got := r.uint(n); got != 0 || !r.bad() {
			t.Errorf("%d bytes are %#x", n, got)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, c := range []struct {
		data  []byte
		n     uint64
		wide  bool
		fault string
	}{
		{[]byte{0xef, 0xff, 0xff, 0xff}, 0xffffffef, false, ""},
		{[]byte{0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}, 0, true, "the length 0xfffffff0, which is reserved"},
		{[]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0x80}, 1<<63 + 1, true, ""},
		{[]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0}, 0, true, "0x8 bytes, 0x3 are left"},
		{[]byte{1, 0, 0}, 0, false, "0x4 bytes, 0x3 are left"},
	} {
		r := cursor{data: c.data}
		if n, wide := r.length(); n != c.n || wide != c.wide || message(r.fault()) != c.fault {
			t.Errorf("% x: %#x, wide %v and %v", c.data, n, wide, r.fault())
		}
	}
	r := cursor{data: []byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}}
	if narrow, wide := r.word(false), r.word(true); narrow != 1 || wide != 2 || r.at != 12 {
		t.Errorf("offsets %#x and %#x, up to %d", narrow, wide, r.at)
	}
}

func TestText(t *testing.T) {
	r := cursor{data: []byte("ab\x00\x00c")}
	if a, b := r.text(), r.text(); string(a) != "ab" || len(b) != 0 || r.bad() || cap(a) != 2 {
		t.Errorf("%q and %q: %v", a, b, r.fault())
	}
	if c := r.text(); c != nil || !errors.Is(r.fault(), errNoEnd) || r.at != 4 {
		t.Errorf("%q at %d: %v", c, r.at, r.fault())
	}
}

// The first fault stays, and nothing is read behind it.
func TestFirstFaultStays(t *testing.T) {
	fault := errors.New("the caller's")
	r := cursor{data: repeat(1, 100)}
	r.fail(fault)
	r.fail(errNoEnd)
	for name, got := range map[string]bool{
		"Take": r.take(1) != nil, "U8": r.u8() != 0, "U16": r.u16() != 0, "U32": r.u32() != 0, "U64": r.u64() != 0,
		"Uint": r.uint(3) != 0, "Uleb": r.uleb() != 0, "Sleb": r.sleb() != 0, "Text": r.text() != nil,
	} {
		if got {
			t.Errorf("%s reads on", name)
		}
	}
	r.skip(1)
	r.skipLEB()
	if r.at != 0 || r.fault() != fault {
		t.Errorf("at %d: %v", r.at, r.fault())
	}
}

// FuzzCursor reads values in the order that ops give: nothing panics, At stays in
// the data and never goes back, and LEB128 are what arithmetic without limits says.
func FuzzCursor(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []byte(strings.Repeat("\x01\x00\x80\xff", 40)), false)
	f.Add([]byte{6, 7}, repeat(0xff, 9, 1), true)
	// The limits of LEB128: what 64 bits hold is read, however it is padded, and nothing else is made of it.
	for _, data := range [][]byte{
		nil, {0}, {0x3f}, {0x40}, {0x80}, {0x80 + 57, 100}, {0xff, 0x7e}, // the last two are examples of DWARF 5, section 7.6
		repeat(0xff, 9), repeat(0xff, 8, 0x7f), repeat(0xff, 9, 0), repeat(0xff, 9, 1), repeat(0xff, 9, 0x7f),
		repeat(0x80, 9, 0x7f), repeat(0x80, 9, 1), repeat(0x80, 9, 2), repeat(0x80, 9, 0x40), repeat(0x80, 10, 1),
		{0x85, 0}, append([]byte{0x85}, repeat(0x80, 10, 0)...), repeat(0xff, 11, 0x7f), repeat(0xff, 11, 0), // padded
		repeat(0x80, 100), repeat(0xff, 100),
	} {
		for _, op := range []byte{6, 7, 8} {
			f.Add([]byte{op}, data, false)
		}
	}
	f.Fuzz(func(t *testing.T, ops, data []byte, most bool) {
		r := cursor{data: data, big: most}
		for _, op := range ops {
			before, bad := r.at, r.bad()
			read(t, &r, op)
			if r.at < before || r.at > len(data) || bad && (r.at != before || !r.bad()) {
				t.Fatalf("operation %d leads from %d to %d of %d: %v", op%11, before, r.at, len(data), r.fault())
			}
		}
	})
}

func read(t *testing.T, r *cursor, op byte) {
	start, bad := r.at, r.bad()
	switch op % 11 {
	case 0:
		r.u8()
	case 1:
		r.u16()
	case 2:
		r.u32()
	case 3:
		r.u64()
	case 4:
		r.uint(int(op >> 4))
	case 5:
		r.take(uint64(op) * uint64(op))
	case 6:
		if v := r.uleb(); !bad {
			checkLEB(t, r, start, new(big.Int).SetUint64(v), false)
		}
	case 7:
		if v := r.sleb(); !bad {
			checkLEB(t, r, start, big.NewInt(v), true)
		}
	case 8:
		r.skipLEB()
		end := slices.IndexFunc(r.data[start:], func(b byte) bool { return b < 0x80 })
		if !bad && (end < 0) != r.bad() || !r.bad() && r.at != start+end+1 {
			t.Fatalf("% x: skipped up to %d: %v", r.data[start:], r.at, r.fault())
		}
	case 9:
		r.text()
	case 10:
		n, wide := r.length()
		if !r.bad() && !wide && n != uint64(binary.LittleEndian.Uint32(r.data[start:])) && !r.big {
			t.Fatalf("the length % x is %#x", r.data[start:r.at], n)
		}
	}
}

// checkLEB compares a value with what its bytes say.
func checkLEB(t *testing.T, r *cursor, start int, got *big.Int, signed bool) {
	want, bits := new(big.Int), uint(0)
	complete, end := false, start
	for _, b := range r.data[start:] {
		end++
		want.Or(want, new(big.Int).Lsh(big.NewInt(int64(b&0x7f)), bits))
		bits += 7
		if b < 0x80 {
			complete = true
			if signed && b&0x40 != 0 {
				want.Sub(want, new(big.Int).Lsh(big.NewInt(1), bits))
			}
			break
		}
	}
	fits := complete && (signed && want.IsInt64() || !signed && want.IsUint64())
	if fits == r.bad() || fits && (got.Cmp(want) != 0 || r.at != end) || complete && !fits && r.fault() != errOverflow {
		t.Fatalf("signed %v, % x: %v, up to %d, and %v, want %v", signed, r.data[start:], got, r.at, r.fault(), want)
	}
}

// A field keeps its length: the sum and the difference of a ULEB128 are those of as many
// bits as it has.
func TestFieldsOfRelocations(t *testing.T) {
	o := &elfreloc.Object{}
	o.Encoding.Order = binary.LittleEndian
	for _, c := range []struct {
		size      int
		data      string
		add       uint64
		want      string // "" where there is no field
		wantValue uint64 // before
	}{
		{1, "\x05\x07", 0x103, "\x08\x07", 5},
		{4, "\x05\x00\x00\x80\x07", 1, "\x06\x00\x00\x80\x07", 0x80000005},
		{8, "\x05\x00\x00\x80\x07", 1, "", 0},
		{arch.ULEB128, "\x05\x07", 3, "\x08\x07", 5},
		{arch.ULEB128, "\x80\x80\x00\x07", 0x1234, "\xb4\xa4\x00\x07", 0},
		{arch.ULEB128, "\xff\x7f\x07", 1, "\x80\x00\x07", 0x3fff},
		{arch.ULEB128, "\x80\x00", ^uint64(0), "\xff\x7f", 0},
		{arch.ULEB128, "\x80\x80", 1, "", 0},
		{arch.ULEB128, "", 1, "", 0},
		{arch.ULEB128, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 1, "", 0},
	} {
		data := []byte(c.data)
		field := begin(data, c.size)
		if field == nil || c.want == "" {
			if field != nil || c.want != "" {
				t.Errorf("%d, % x: a field % x", c.size, c.data, field)
			}
			continue
		}
		value := get(o, c.size, field)
		put(o, c.size, field, value+c.add)
		if value != c.wantValue || !bytes.Equal(data, []byte(c.want)) {
			t.Errorf("%d, % x: %#x, and then % x", c.size, c.data, value, data)
		}
	}
}
