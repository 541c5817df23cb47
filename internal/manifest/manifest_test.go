package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sdtconvert/internal/input"
	"sdtconvert/internal/manifest"
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
		opts := patch.Options{FixedLayout: true}.Complete()
		object, err := in.Source().Relocatable(opts.Names)
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

func read(t *testing.T, text []byte) (all []*manifest.Object) {
	t.Helper()
	expect.OK(t, manifest.Read(bytes.NewReader(text), func(o *manifest.Object) { all = append(all, o) }))
	return all
}

// What is written is read again, whole, and of several manifests one behind the other
// too.
func TestWhatIsWrittenIsRead(t *testing.T) {
	tools.Long(t)
	all := described(t)
	sites, code, records, functions, sources, refused := 0, 0, 0, 0, 0, 0
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	for _, o := range all {
		sites += len(o.Sites)
		for i := range o.Sites {
			s := &o.Sites[i]
			count(&code, len(s.Old) > 0 && len(s.New) == len(s.Old))
			count(&records, s.Record != nil)
			count(&functions, s.Function != "")
			count(&sources, s.Source != "")
			count(&refused, s.State == manifest.Refused && s.Refused != "")
		}
	}
	for what, n := range map[string]int{"site": sites, "code": code, "record": records, "function": functions, "source": sources, "refusal": refused} {
		if n == 0 {
			t.Errorf("no object has a %s", what)
		}
	}
	text := written(t, all)
	same := cmpopts.IgnoreUnexported(manifest.Site{})
	if diff := cmp.Diff(all, read(t, text), same, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	twice := slices.Clone(all)
	for _, o := range all {
		again := *o
		again.Document = 1
		twice = append(twice, &again)
	}
	if diff := cmp.Diff(twice, read(t, append(text, text...)), same, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestManifestOfNothing(t *testing.T) {
	text := written(t, nil)
	expect.Equal(t, "{\n  \"version\": 1,\n  \"objects\": []\n}\n", string(text))
	if all := read(t, text); len(all) != 0 {
		t.Errorf("%d objects", len(all))
	}
}

func TestWhatIsNoManifest(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "is not a manifest: it is empty",
		"[]":                           "is not a manifest: array at byte 1 is not one of its values",
		`{"version": 2, "objects":[]}`: "is not a manifest of version 1, as convert --json prints it",
		`{"version": 1}`:               "is not a manifest of version 1, as convert --json prints it",
		`{"version": 1, "objects":`:    "is not a manifest: unexpected EOF",
		`{"version": 1, "objects":[{"file": "a.o", "sites": [{"old": "e"}]}]}`: "is not a manifest: encoding/hex: odd length hex string",
	} {
		err := manifest.Read(strings.NewReader(text), func(*manifest.Object) {})
		expect.Equal(t, want, fmt.Sprint(err), "%q", text)
	}
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

// What is read of a manifest is one object after the other. What makes no sense is refused
// with its place, unknown fields are skipped, and null stands for what is missing.
func TestRead(t *testing.T) {
	const site = `{"kind":"call","state":"live","probe":"a___b","x":[{"y":1}]}`
	for _, c := range []struct{ text, want string }{
		{`{"version":1,"x":{"y":[1,{}]},"objects":[{"file":"a.o","sites":[` + site + `,` + site + `],"errors":null},{"file":"b.o","sites":null}]}`, "a.o 2, b.o 0"},
		{`{"Version":1,"OBJECTS":[]} {"version":1,"objects":[{"file":"a.o"}]}`, "a.o 0"},
		{`{"version":1,"objects":[{}]}`, "is not a manifest: the object before byte 26 has no file"},
		{`{"version":1,"objects":[{"file":"a.o","sites":[{}]}]}`, "is not a manifest: the site before byte 49 has no kind or state"},
		{`{"version":1,"objects":null}`, "is not a manifest of version 1, as convert --json prints it"},
		{`{"version":2,"objects":[]}`, "is not a manifest of version 1, as convert --json prints it"},
		{`{"version":1,"objects":[`, "is not a manifest: unexpected EOF"},
		{`{"version":1,"objects":"x"}`, "is not a manifest: string at byte 26 is not one of its values"},
		{`[1]`, "is not a manifest: array at byte 1 is not one of its values"},
		{"", "is not a manifest: it is empty"},
	} {
		var all []string
		err := manifest.Read(strings.NewReader(c.text), func(o *manifest.Object) {
			all = append(all, fmt.Sprintf("%s %d", o.File, len(o.Sites)))
		})
		got := strings.Join(all, ", ")
		if err != nil {
			got = err.Error()
		}
		expect.Equal(t, c.want, got, "%s", c.text)
	}
}
