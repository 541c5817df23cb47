package elfreloc_test

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"sdtconvert/elfreloc"
)

// The calls that the code of an object makes of functions elsewhere.
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
	symbols, err := o.Symbols()
	if err != nil {
		log.Fatal(err)
	}
	err = o.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if s := symbols.At(int(r.Sym)); !s.Defined() {
			fmt.Printf("%s+%#x: %s%+d\n", o.Sections[target].Name, r.Offset, s.Name, r.Addend)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// .text+0x4: __dtrace_isenabled_small___call-4
	// .text+0xf: __dtrace_probe_small___call-4
	// .text+0x21: __dtrace_probe_small___call-4
}

// An edit that gives a function another name, and puts a breakpoint at its start.
func ExampleEdit() {
	data, err := os.ReadFile("../testdata/objs/small.amd64-clang19-O2.o")
	if err != nil {
		log.Fatal(err)
	}
	in := bytes.NewReader(data)
	o, err := elfreloc.Open(in, in.Size(), "small.o")
	if err != nil {
		log.Fatal(err)
	}
	e, err := o.Edit()
	if err != nil {
		log.Fatal(err)
	}
	symbols, err := o.Symbols()
	if err != nil {
		log.Fatal(err)
	}
	for i := range symbols.Len() {
		s := symbols.At(i)
		if s.Name != "small_call" {
			continue
		}
		old, err := o.Bytes(s.Section, s.Value, 1)
		if err != nil {
			log.Fatal(err)
		}
		if err := e.Patch(s.Section, elfreloc.Patch{Offset: s.Value, Old: old, New: []byte{0xcc}}); err != nil {
			log.Fatal(err)
		}
		s.Name = "stopped"
		e.SetSymbol(uint32(i), s)
	}
	out, err := e.Output()
	if err != nil {
		log.Fatal(err)
	}
	var result bytes.Buffer
	if err := out.Write(&result, in); err != nil {
		log.Fatal(err)
	}

	o, err = elfreloc.Open(bytes.NewReader(result.Bytes()), out.Size, "stopped.o")
	if err != nil {
		log.Fatal(err)
	}
	symbols, err = o.Symbols()
	if err != nil {
		log.Fatal(err)
	}
	for i := range symbols.Len() {
		if s := symbols.At(i); s.Defined() && s.Name != "" {
			code, err := o.Bytes(s.Section, s.Value, 2)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s: % x\n", s.Name, code)
		}
	}
	// Output:
	// stopped: cc 89
	// small_tail: e9 00
}
