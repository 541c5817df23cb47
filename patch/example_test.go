package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

// Converting an object in memory.
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
	out, err := patch.Convert(o, patch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if out == nil {
		fmt.Println("there is nothing to convert")
		return
	}
	var converted bytes.Buffer
	if err := out.Write(&converted, in); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Contains(converted.Bytes(), []byte("__dtrace_probe_")))
	fmt.Println(bytes.Contains(converted.Bytes(), []byte("sdt_instances_set")))
	// Output:
	// false
	// true
}

// The sites of an object, what they become, and what stands in the way.
func ExampleExamine() {
	for _, name := range []string{"small.amd64-clang19-O2.o", "address.amd64-gcc12-data.o"} {
		file, err := os.Open("../testdata/objs/" + name)
		if err != nil {
			log.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			log.Fatal(err)
		}
		o, err := elfreloc.Open(file, info.Size(), name)
		if err != nil {
			log.Fatal(err)
		}
		plan, err := patch.Examine(o, patch.Options{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s:\n", name)
		for _, s := range plan.Sites {
			site := &s.Change.Site
			fmt.Printf("%s+%#x: %s %s: % x -> % x\n", o.Sections[s.Relocs.Target].Name, site.Offset,
				arch.Describe(s.Stub.Kind, site.Form), s.Stub.ID, site.Code, s.Change.New)
		}
		for _, err := range plan.Errors() {
			var refusal *arch.Refusal
			if errors.As(err, &refusal) {
				fmt.Printf("refused: %s; %s\n", refusal.Reason, refusal.Hint)
			}
		}
	}
	// Output:
	// small.amd64-clang19-O2.o:
	// .text+0x3: isenabled small___call: e8 00 00 00 00 -> e8 00 00 00 00
	// .text+0xe: call small___call: e8 00 00 00 00 -> 90 0f 1f 40 00
	// .text+0x20: tail small___call: e9 00 00 00 00 -> 90 c3 cc cc cc
	// address.amd64-gcc12-data.o:
	// .text+0x3: call address___taken: e8 00 00 00 00 -> 90 0f 1f 40 00
	// refused: the stub's address is stored in data; do not take the stub's address
	// refused: the stub's address is stored in data; do not take the stub's address
}
