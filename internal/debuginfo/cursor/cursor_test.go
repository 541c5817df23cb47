package cursor_test

import (
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/debuginfo/cursor"
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
			r := cursor.Cursor{Data: data, Big: order}
			if got := r.Uint(c.n); got != want || r.Bad() || r.At != c.n {
				t.Errorf("%d bytes, big-endian %v: %#x at %d and %v, want %#x", c.n, order, got, r.At, r.Err(), want)
			}
			r = cursor.Cursor{Data: data[:c.n-1], Big: order}
			if got := r.Uint(c.n); got != 0 || message(r.Err()) != c.fault || r.At != 0 {
				t.Errorf("%d bytes of %d: %#x at %d and %v", c.n, c.n-1, got, r.At, r.Err())
			}
		}
	}
	for _, n := range []int{-1, 0, 3, 5, 9} {
		r := cursor.Cursor{Data: data}
		if got := r.Uint(n); got != 0 || !r.Bad() {
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
		r := cursor.Cursor{Data: c.data}
		if n, wide := r.Length(); n != c.n || wide != c.wide || message(r.Err()) != c.fault {
			t.Errorf("% x: %#x, wide %v and %v", c.data, n, wide, r.Err())
		}
	}
	r := cursor.Cursor{Data: []byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}}
	if narrow, wide := r.Word(false), r.Word(true); narrow != 1 || wide != 2 || r.At != 12 {
		t.Errorf("offsets %#x and %#x, up to %d", narrow, wide, r.At)
	}
}

func TestText(t *testing.T) {
	r := cursor.Cursor{Data: []byte("ab\x00\x00c")}
	if a, b := r.Text(), r.Text(); string(a) != "ab" || len(b) != 0 || r.Bad() || cap(a) != 2 {
		t.Errorf("%q and %q: %v", a, b, r.Err())
	}
	if c := r.Text(); c != nil || !errors.Is(r.Err(), cursor.ErrNoEnd) || r.At != 4 {
		t.Errorf("%q at %d: %v", c, r.At, r.Err())
	}
}

// The first fault stays, and nothing is read behind it.
func TestFirstFaultStays(t *testing.T) {
	fault := errors.New("the caller's")
	r := cursor.Cursor{Data: repeat(1, 100)}
	r.Fail(fault)
	r.Fail(cursor.ErrNoEnd)
	for name, got := range map[string]bool{
		"Take": r.Take(1) != nil, "U8": r.U8() != 0, "U16": r.U16() != 0, "U32": r.U32() != 0, "U64": r.U64() != 0,
		"Uint": r.Uint(3) != 0, "Uleb": r.Uleb() != 0, "Sleb": r.Sleb() != 0, "Text": r.Text() != nil,
	} {
		if got {
			t.Errorf("%s reads on", name)
		}
	}
	r.Skip(1)
	r.SkipLEB()
	if r.At != 0 || r.Err() != fault {
		t.Errorf("at %d: %v", r.At, r.Err())
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
		r := cursor.Cursor{Data: data, Big: most}
		for _, op := range ops {
			before, bad := r.At, r.Bad()
			read(t, &r, op)
			if r.At < before || r.At > len(data) || bad && (r.At != before || !r.Bad()) {
				t.Fatalf("operation %d leads from %d to %d of %d: %v", op%11, before, r.At, len(data), r.Err())
			}
		}
	})
}

func read(t *testing.T, r *cursor.Cursor, op byte) {
	start, bad := r.At, r.Bad()
	switch op % 11 {
	case 0:
		r.U8()
	case 1:
		r.U16()
	case 2:
		r.U32()
	case 3:
		r.U64()
	case 4:
		r.Uint(int(op >> 4))
	case 5:
		r.Take(uint64(op) * uint64(op))
	case 6:
		if v := r.Uleb(); !bad {
			checkLEB(t, r, start, new(big.Int).SetUint64(v), false)
		}
	case 7:
		if v := r.Sleb(); !bad {
			checkLEB(t, r, start, big.NewInt(v), true)
		}
	case 8:
		r.SkipLEB()
		end := slices.IndexFunc(r.Data[start:], func(b byte) bool { return b < 0x80 })
		if !bad && (end < 0) != r.Bad() || !r.Bad() && r.At != start+end+1 {
			t.Fatalf("% x: skipped up to %d: %v", r.Data[start:], r.At, r.Err())
		}
	case 9:
		r.Text()
	case 10:
		n, wide := r.Length()
		if !r.Bad() && !wide && n != uint64(binary.LittleEndian.Uint32(r.Data[start:])) && !r.Big {
			t.Fatalf("the length % x is %#x", r.Data[start:r.At], n)
		}
	}
}

// checkLEB compares a value with what its bytes say.
func checkLEB(t *testing.T, r *cursor.Cursor, start int, got *big.Int, signed bool) {
	want, bits := new(big.Int), uint(0)
	complete, end := false, start
	for _, b := range r.Data[start:] {
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
	if fits == r.Bad() || fits && (got.Cmp(want) != 0 || r.At != end) || complete && !fits && r.Err() != cursor.ErrOverflow {
		t.Fatalf("signed %v, % x: %v, up to %d, and %v, want %v", signed, r.Data[start:], got, r.At, r.Err(), want)
	}
}
