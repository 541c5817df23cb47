package patch

import (
	"bytes"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
)

// signatureMagic ends the signature behind a module (Linux, module_signature.h).
const signatureMagic = "~Module signature appended~\n"

// copyTrailingBytes gives an output the padding that the object has. What else is behind the object
// is lost, of which it warns.
func copyTrailingBytes(o *elfreloc.Object, out *elfreloc.Output) (warning, err error) {
	lost := o.Size() - o.End()
	if lost <= 0 {
		return nil, nil
	}
	old, err := padding(o)
	if err != nil {
		return nil, err
	}
	if old != nil {
		pad(out)
		return nil, nil
	}
	what := fmt.Sprintf("%d bytes behind the ELF file are dropped", lost)
	if n := int64(len(signatureMagic)); lost >= n {
		end, err := o.ReadFile(o.Size()-n, n)
		if err != nil {
			return nil, err
		}
		if string(end) == signatureMagic {
			what = "the module's signature is dropped, because it no longer fits; sign the module again"
		}
	}
	return &elfreloc.Error{File: o.Name, Err: errors.New(what)}, nil
}

// memberPadding is the multiple, in bytes, to which LLVM's ar pads members of archives for Darwin. The padding counts as
// contents.
const memberPadding = 8

// padding returns what pads a member behind the end of the object in it, or nil for something else.
func padding(o *elfreloc.Object) ([]byte, error) {
	n := o.Size() - o.End()
	if n <= 0 || n >= memberPadding || o.Size()%memberPadding != 0 {
		return nil, nil
	}
	b, err := o.ReadFile(o.End(), n)
	if len(bytes.Trim(b, "\n")) > 0 {
		b = nil
	}
	return b, err
}

// pad pads an output as LLVM's ar pads a member.
func pad(out *elfreloc.Output) {
	if n := -out.Size & (memberPadding - 1); n > 0 {
		out.Extents = append(out.Extents, elfreloc.Extent{Data: bytes.Repeat([]byte("\n"), int(n)), Len: n})
		out.Size += n
	}
}
