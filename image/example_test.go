package image_test

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/patch"
)

// What the words of a section refer to: here those of records, in an object that
// is not linked yet.
func Example() {
	data, err := os.ReadFile("../testdata/objs/small.amd64-clang19-O2.o")
	if err != nil {
		log.Fatal(err)
	}
	in := bytes.NewReader(data)
	o, err := elfreloc.Open(in, in.Size(), "small.o")
	if err != nil {
		log.Fatal(err)
	}
	out, err := patch.Convert(o, patch.Options{FixedLayout: true})
	if err != nil {
		log.Fatal(err)
	}
	if o, err = elfreloc.Open(out.Reader(in), out.Size, "small.o"); err != nil {
		log.Fatal(err)
	}

	im, err := image.Open(o, machines.Lookup(o.ABI()))
	if err != nil {
		log.Fatal(err)
	}
	arrays, err := im.Arrays("sdt_instances_set")
	if err != nil {
		log.Fatal(err)
	}
	word := uint64(im.Encoding().Word())
	for _, a := range arrays {
		for off := uint64(0); off < a.Size; off += word {
			ref, err := im.Word(a.Start.Add(off))
			if err != nil {
				log.Fatal(err)
			}
			if ref.Undefined {
				fmt.Println(ref.Symbol)
			} else {
				fmt.Println(im.Place(ref.Addr))
			}
		}
	}
	// Output:
	// sdt_small___call
	// .text+0xe
	// sdt_small___call
	// .text+0x20
}
