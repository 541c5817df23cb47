package patch

import (
	"bytes"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
)

// GuardedSection is the name of the sections that tie probes to guards of other names: pairs of strings, each an id
// with "_" before it, of a probe and of its guard. docs/records.md is the contract with what writes it.
const GuardedSection = ".sdt_guards"

// guardsOfProbes returns the id of the guard of each probe that is tied to one.
func guardsOfProbes(o *elfreloc.Object) (map[string]string, error) {
	guards := map[string]string{}
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Name != GuardedSection || !s.InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		for at := 0; at < len(data); {
			probe, guard, size, err := guardedPair(data[at:])
			if err == nil && guards[probe] != "" && guards[probe] != guard {
				err = fmt.Errorf("the probe %s has the guards %s and %s, want one", probe, guards[probe], guard)
			}
			if err != nil {
				return nil, o.OffsetError(i, uint64(at), err)
			}
			guards[probe] = guard
			at += size
		}
	}
	return guards, nil
}

// guardedPair reads a pair, and returns its size in bytes.
func guardedPair(data []byte) (probe, guard string, size int, err error) {
	var ids [2]string
	for i := range ids {
		text, rest, ended := bytes.Cut(data[size:], []byte{0})
		id, ok := bytes.CutPrefix(text, []byte("_"))
		if !ended || !ok || len(id) == 0 {
			return "", "", 0, errors.New(`want pairs of strings, each "_" and an id`)
		}
		ids[i], size = string(id), len(data)-len(rest)
	}
	return ids[0], ids[1], size, nil
}
