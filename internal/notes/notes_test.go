package notes

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/linkerset"
)

func TestNotes(t *testing.T) {
	to := linkerset.SymbolRef{Sym: 3, Addend: 0x12}
	little, big := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	for _, c := range []struct {
		class  elf.Class
		order  binary.ByteOrder
		rela   bool
		want   string
		fields []uint64
	}{
		{elf.ELFCLASS64, little, true, "05000000" + "1b000000" + "07000000" + "7573647400000000" +
			"0000000000000000" + "0000000000000000" + "0000000000000000" + "616200" + "00", []uint64{20, 28}},
		{elf.ELFCLASS64, big, false, "00000005" + "0000001b" + "00000007" + "7573647400000000" +
			"0000000000000012" + "0000000000000012" + "0000000000000000" + "616200" + "00", []uint64{20, 28}},
		{elf.ELFCLASS32, little, false, "05000000" + "13000000" + "07000000" + "7573647400000000" +
			"12000000" + "1200000000000000" + "00000000" + "616200" + "00", []uint64{20, 24}},
		{elf.ELFCLASS32, big, false, "00000005" + "00000013" + "00000007" + "7573647400000000" +
			"00000012" + "0000000000000012" + "00000000" + "616200" + "00", []uint64{20, 28}},
	} {
		n := &sectionNotes{layout: elfreloc.Encoding{Class: c.class, Order: c.order}, rela: c.rela}
		for range 2 {
			n.add("usdt", 7, func(n *sectionNotes) {
				n.word(to)
				n.word64(to)
				n.word(linkerset.SymbolRef{})
				n.string("ab")
			})
		}
		expect.Equal(t, c.want+c.want, hex.EncodeToString(n.data), "%v, %v", c.class, c.order)
		for i, f := range n.fields {
			size := uint64(len(c.want) / 2)
			if want := (noteField{uint64(i/2)*size + c.fields[i%2], to}); f != want {
				t.Errorf("%v, %v: field %d is %v, want %v", c.class, c.order, i, f, want)
			}
		}
	}
}
