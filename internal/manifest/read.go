package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Read calls each with the objects of a manifest, or of several one behind the other. It
// decodes one site at a time, and keeps no more than one object: a site takes several times
// as much memory as its text, and as the whole document would.
func Read(r io.Reader, each func(o *Object)) error {
	d := decoder{Decoder: json.NewDecoder(r), each: each}
	for known := false; ; known = true {
		version, objects, err := d.document()
		d.number++
		wrong := (*json.UnmarshalTypeError)(nil)
		switch {
		case errors.Is(err, io.EOF) && known:
			return nil
		case errors.Is(err, io.EOF): // convert has failed, and nothing would be compared
			return errors.New("is not a manifest: it is empty")
		case errors.As(err, &wrong):
			return fmt.Errorf("is not a manifest: %s at byte %d is not one of its values", wrong.Value, d.InputOffset())
		case errors.As(err, new(*json.SyntaxError)) && d.InputOffset() == 0:
			return errors.New("is not a manifest, as convert --json prints it")
		case err != nil:
			return fmt.Errorf("is not a manifest: %w", err)
		case version != Version || !objects:
			return fmt.Errorf("is not a manifest of version %d, as convert --json prints it", Version)
		}
	}
}

// decoder decodes manifests. Fields that it does not know are skipped.
type decoder struct {
	*json.Decoder
	each   func(o *Object)
	number int // of documents before this one
}

// document decodes one manifest. io.EOF says that there is none.
func (d decoder) document() (version int, objects bool, err error) {
	first, err := d.Token()
	if err != nil {
		return 0, false, err
	}
	if first != json.Delim('{') {
		return 0, false, wrongType(first)
	}
	err = d.fields(func(name string) error {
		switch name {
		case "version":
			return d.Decode(&version)
		case "objects":
			objects, err = d.elements(d.object)
			return err
		}
		return d.Decode(new(json.RawMessage)) // not asked for
	})
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return version, objects, err
}

// object decodes an object, and hands it on.
func (d decoder) object() error {
	o := Object{Document: d.number}
	first, err := d.Token()
	if err != nil {
		return err
	}
	if first != json.Delim('{') {
		return wrongType(first)
	}
	err = d.fields(func(name string) error {
		switch name {
		case "file":
			return d.Decode(&o.File)
		case "machine":
			return d.Decode(&o.Machine)
		case "status":
			return d.Decode(&o.Status)
		case "errors":
			return d.Decode(&o.Errors)
		case "sites":
			_, err := d.elements(func() error { return d.site(&o) })
			return err
		}
		return d.Decode(new(json.RawMessage)) // not asked for
	})
	if err == nil && o.File == "" {
		err = fmt.Errorf("the object before byte %d has no file", d.InputOffset())
	}
	if err == nil {
		d.each(&o)
	}
	return err
}

// site decodes a site of an object.
func (d decoder) site(o *Object) error {
	var s Site
	if err := d.Decode(&s); err != nil {
		return err
	}
	if s.Kind == "" || s.State == "" {
		return fmt.Errorf("the site before byte %d has no kind or state", d.InputOffset())
	}
	o.Sites = append(o.Sites, s)
	return nil
}

// fields calls value for each field of an object, behind its name, and reads its end.
func (d decoder) fields(value func(name string) error) error {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := value(strings.ToLower(fmt.Sprint(name))); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// elements calls value for each element of an array, and reports whether there is one, and
// no null.
func (d decoder) elements(value func() error) (bool, error) {
	first, err := d.Token()
	switch {
	case err != nil || first == nil:
		return false, err
	case first != json.Delim('['):
		return false, wrongType(first)
	}
	for d.More() {
		if err := value(); err != nil {
			return false, err
		}
	}
	_, err = d.Token()
	return true, err
}

// wrongType returns the error of a value that stands where another kind belongs.
func wrongType(got json.Token) error {
	kind := "array"
	switch got.(type) {
	case json.Delim:
		if got == json.Delim('{') {
			kind = "object"
		}
	case string:
		kind = "string"
	case float64:
		kind = "number"
	case bool:
		kind = "bool"
	default:
		kind = "null"
	}
	return &json.UnmarshalTypeError{Value: kind}
}
