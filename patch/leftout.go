package patch

import (
	"fmt"

	"sdtconvert/arch"
)

// LeftOut tells of each stub which arguments of its probe notes leave out, as a part of
// a sentence: "argument 2, a floating-point number, and those behind it". What notes
// tell in full is not there.
func (p *Plan) LeftOut() (map[*Stub]string, error) {
	out := map[*Stub]string{}
	if len(p.Sites) == 0 || p.Scan.Machine == nil {
		return out, nil
	}
	known, err := p.knowledge()
	if err != nil {
		return nil, err
	}
	for i := range p.Sites {
		s := p.Sites[i].Stub
		if _, done := out[s]; done || s.Kind != arch.Probe {
			continue
		}
		text, err := known.leftOut(s)
		if err != nil {
			return nil, err
		}
		if text != "" {
			out[s] = text
		}
	}
	return out, nil
}

// leftOut tells what notes leave out of a stub's arguments, "" for nothing. Only debug
// information tells of any: other types are those of integers and pointers.
func (k *knowledge) leftOut(s *Stub) (string, error) {
	known, err := k.probe(s.ID)
	if err != nil || len(known.Args) > 0 {
		return "", err
	}
	declared, _ := k.prototypes() // the warning is Apply's
	params := declared[s.Name]
	for i, param := range params {
		if param.Size != 0 {
			continue
		}
		text := fmt.Sprintf("argument %d, %s", i+1, param.Other)
		switch len(params) - i {
		case 1:
		case 2:
			text += ", and the one behind it"
		default:
			text += ", and those behind it"
		}
		return text, nil
	}
	return "", nil
}
