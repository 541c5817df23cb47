// Program lists the probe sites of an object, and converts it to another file.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

func main() {
	log.SetFlags(0)
	data, err := os.ReadFile(os.Args[1])
	check(err)
	in := bytes.NewReader(data)
	o, err := elfreloc.Open(in, in.Size(), os.Args[1])
	check(err)
	plan, err := patch.Examine(o, patch.Options{FixedLayout: true}.Complete())
	check(err)
	for _, s := range plan.Sites {
		section, at := o.Sections[s.Relocs.Target].Name, s.Change.Site
		fmt.Printf("%s+%#x %s %s\n", section, at.Offset, arch.Describe(s.Stub.Kind, at.Form), s.Stub.ID)
	}
	out, err := plan.Output()
	check(err)
	if out != nil {
		file, err := os.Create(os.Args[2])
		check(err)
		check(out.Write(file, in))
		check(file.Close())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
