package dofprobes

import (
	"fmt"

	"sdtconvert/linkerset"
)

// types are what a dof_probe_t says of the arguments of a probe. It is the same for all
// functions that have sites of it.
type types struct {
	native, translated uint32 // strings, one behind the other
	nativeN            byte
	translatedN        byte
	mapping            uint32 // which argument each translated one is, a byte each
}

// arguments reads what D programs see of the arguments of a probe.
func (f *file) arguments(t *tables, at uint64) ([]linkerset.Argument, error) {
	key := types{f.u32(at + 16), f.u32(at + 20), f.data[at+32], f.data[at+33], f.u32(at + 24)}
	if known, ok := t.known[key]; ok {
		return known, nil
	}
	native, err := f.strings(t, key.native, key.nativeN)
	if err != nil {
		return nil, err
	}
	translated, err := f.strings(t, key.translated, key.translatedN)
	if err != nil {
		return nil, err
	}
	if uint64(key.mapping)+uint64(key.translatedN) > t.args.size {
		return nil, fmt.Errorf("has %d arguments at %#x, behind their table", key.translatedN, key.mapping)
	}
	all := make([]linkerset.Argument, len(translated))
	for i := range all {
		from := f.data[t.args.offset+uint64(key.mapping)+uint64(i)]
		if from >= key.nativeN {
			return nil, fmt.Errorf("has an argument that is number %d of %d", from, key.nativeN)
		}
		all[i] = linkerset.Argument{Index: i, Native: native[from]}
		if translated[i] != native[from] {
			all[i].Translated = translated[i]
		}
	}
	t.known[key] = all
	return all, nil
}

// strings reads some that stand one behind the other.
func (f *file) strings(t *tables, first uint32, n byte) ([]string, error) {
	off := uint64(first)
	all := make([]string, n)
	for i := range all {
		var err error
		if all[i], off, err = f.string(t, off); err != nil {
			return nil, err
		}
	}
	return all, nil
}
