package linkerset_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// The records of an object that was converted.
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
	opts := patch.Options{Layout: linkerset.Layout{Format: linkerset.Relative}}
	out, err := patch.Convert(o, opts)
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
	entries, faults, err := opts.Layout.Read(im)
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range faults {
		fmt.Println(fault)
	}
	slices.SortStableFunc(entries, func(a, b linkerset.Entry) int { return a.Address.Compare(b.Address) })
	probes := linkerset.NewProbes(im, patch.DefaultProbePrefix)
	for _, e := range entries {
		probe, err := probes.Lookup(e.Probe)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s:%s, of %s\n", im.Place(e.Address), probe.Provider, probe.Name, im.Place(e.Record))
	}
	// Output:
	// .text+0x3: small:call, of sdt_isenabled_rel+0x0
	// .text+0xe: small:call, of sdt_instances_rel+0x0
	// .text+0x20: small:call, of sdt_instances_rel+0x8
}

// What the sections of a layout hold, for words of 8 bytes.
func ExampleLayout_Arrays() {
	referents := map[linkerset.Referent]string{
		linkerset.ToProbe: "the probe object", linkerset.ToSite: "the site", linkerset.ToStructure: "the structure",
	}
	const word = 8
	for _, format := range linkerset.Formats() {
		fmt.Println(format)
		for _, a := range (linkerset.Layout{Format: format}).Arrays(arch.Probe, word) {
			fmt.Printf("  %s, entries of %d bytes\n", a.Name, a.Entsize(word))
			for _, f := range a.Entry {
				what := "address"
				if f.Distance {
					what = "distance"
				}
				fmt.Printf("    %d bytes: %s of %s\n", f.Size(word), what, referents[f.To])
			}
		}
	}
	// Output:
	// pairs
	//   sdt_instances_set, entries of 16 bytes
	//     8 bytes: address of the probe object
	//     8 bytes: address of the site
	// relative
	//   sdt_instances_rel, entries of 8 bytes
	//     4 bytes: distance of the probe object
	//     4 bytes: distance of the site
	// freebsd
	//   sdt_instances, entries of 16 bytes
	//     8 bytes: address of the probe object
	//     8 bytes: address of the site
	//   set_sdt_instances_set, entries of 8 bytes
	//     8 bytes: address of the structure
}
