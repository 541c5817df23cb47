package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read calls each with the objects of a manifest, or of several one behind the other.
func Read(r io.Reader, each func(o *Object)) error {
	dec := json.NewDecoder(r)
	for known := false; ; known = true {
		var doc struct {
			Version int
			Objects []Object
		}
		err := dec.Decode(&doc)
		wrong := (*json.UnmarshalTypeError)(nil)
		switch {
		case errors.Is(err, io.EOF) && known:
			return nil
		case errors.Is(err, io.EOF): // convert has failed, and nothing would be compared
			return errors.New("is no manifest: it is empty")
		case errors.As(err, &wrong):
			return fmt.Errorf("is no manifest: %s at byte %d is none of its values", wrong.Value, wrong.Offset)
		case err != nil:
			return fmt.Errorf("is no manifest: %w", err)
		case doc.Version != Version || doc.Objects == nil:
			return fmt.Errorf("is no manifest of version %d, as convert --json prints it", Version)
		}
		for i := range doc.Objects {
			each(&doc.Objects[i])
		}
	}
}
