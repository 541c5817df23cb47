// Package tracers writes what tracers of user space read about the sites of an object: the
// names and arguments of probes, notes that have both, and semaphores. It takes the sites
// as package patch has found and planned them, and knows nothing of plans.
package tracers

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch/internal/probeobjects"
	"sdtconvert/resolve"
)

// Options say what is written. They mean what those of package patch mean that have their
// names.
type Options struct {
	Stapsdt, DTrace bool
	AllSemaphores   bool
	ProbePrefix     string
	Prototypes      map[string][]string
	// ProbeSource is what other files say about probes, nil for nothing.
	ProbeSource interface {
		Probe(id string) (probe linkerset.Probe, ok bool, err error)
	}
}

// Object is an object and what has been found in it.
type Object struct {
	*elfreloc.Object
	Machine   arch.Machine
	Stubs     []Stub
	Guards    []Guard
	Image     image.Image
	Functions func() (*resolve.Table, error)

	ProbeObjects *probeobjects.Objects // of stubs and guards
}

// Stub is the stub of a probe: its name, and the probe's ID.
type Stub struct{ Name, ID string }

// Guard is the symbol of a semaphore that guards read.
type Guard struct {
	Symbol uint32 // its index
	ID     string // of the probe
}
