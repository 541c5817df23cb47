package resolve_test

import (
	"fmt"
	"log"
	"os"

	"sdtconvert/elfreloc"
	"sdtconvert/resolve"
)

// The functions of places in an object.
func Example() {
	file, err := os.Open("../testdata/objs/small.amd64-clang19-O2.o")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	o, err := elfreloc.Open(file, info.Size(), "small.o")
	if err != nil {
		log.Fatal(err)
	}
	functions, err := resolve.New(o, resolve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	const text = 2 // the index of .text
	for _, off := range []uint64{0x3, 0x1c, 0x20} {
		if f, ok := functions.Lookup(text, off); ok {
			fmt.Printf("%#x: %s+%#x of %d bytes\n", off, f.Name, off-f.Start, f.Size)
		} else {
			fmt.Printf("%#x: no function\n", off)
		}
	}
	// Output:
	// 0x3: small_call+0x3 of 25 bytes
	// 0x1c: no function
	// 0x20: small_tail+0x0 of 5 bytes
}

func ExampleDemangle() {
	fmt.Println(resolve.Demangle("_ZN5queue4pushEi"))
	fmt.Println(resolve.Demangle("main"))
	// Output:
	// queue::push(int)
	// main
}
