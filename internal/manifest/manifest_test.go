package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/input"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

// described describes each committed object.
func described(t *testing.T) []*manifest.Object {
	t.Helper()
	var all []*manifest.Object
	files := objects.NewScratch(t)
	for _, file := range objects.Committed(t, 1<<20) {
		expect.OK(t, files.Write(file.Data))
		in := expect.Value(input.Open(files.Path()))(t)
		o := manifest.New(file.Name)
		opts := patch.Options{FixedLayout: true}
		object, err := in.Source().Relocatable(opts.StubTexts())
		if err == nil {
			_, err = manifest.Inspect(o, object, opts)
		}
		if err != nil {
			o.Status, o.Errors = manifest.Failed, []string{err.Error()}
		}
		all = append(all, o)
		in.Close()
	}
	return all
}

func written(t *testing.T, all []*manifest.Object) []byte {
	t.Helper()
	var text bytes.Buffer
	w := manifest.NewWriter(&text)
	for _, o := range all {
		w.Add(o)
	}
	expect.OK(t, w.Close())
	return text.Bytes()
}

// The writer, which keeps no object, writes what encoding/json writes of the whole document.
func TestWriter(t *testing.T) {
	tools.Long(t)
	all := described(t)
	total, code, records, functions, sources, refused := 0, 0, 0, 0, 0, 0
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	for _, o := range all {
		total += len(o.Sites)
		for i := range o.Sites {
			s := &o.Sites[i]
			count(&code, len(s.Old) > 0 && len(s.New) == len(s.Old))
			count(&records, s.Record != nil)
			count(&functions, s.Function != "")
			count(&sources, s.Source != "")
			count(&refused, s.State == sites.Refused && s.Refused != "")
		}
	}
	for what, n := range map[string]int{"site": total, "code": code, "record": records, "function": functions, "source": sources, "refusal": refused} {
		if n == 0 {
			t.Errorf("no object has a %s", what)
		}
	}
	document := struct {
		Version int                `json:"version"`
		Objects []*manifest.Object `json:"objects"`
	}{manifest.Version, all}
	want := expect.Value(json.MarshalIndent(document, "", "  "))(t)
	if diff := cmp.Diff(string(want)+"\n", string(written(t, all))); diff != "" {
		t.Error(diff)
	}
}

func TestManifestOfNothing(t *testing.T) {
	text := written(t, nil)
	expect.Equal(t, "{\n  \"version\": 2,\n  \"objects\": []\n}\n", string(text))
}

// fullAfter is a disk that is full after so many bytes.
type fullAfter int

var errFull = errors.New("the disk is full")

func (f *fullAfter) Write(b []byte) (int, error) {
	if *f -= fullAfter(len(b)); *f < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWhatCannotBeWritten(t *testing.T) {
	all := described(t)
	size := len(written(t, all))
	for _, room := range []int{0, 10, size / 2, size - 1} {
		disk := fullAfter(room)
		w := manifest.NewWriter(&disk)
		for _, o := range all {
			w.Add(o)
		}
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Errorf("%d of %d bytes: %v", room, size, err)
		}
	}
}
