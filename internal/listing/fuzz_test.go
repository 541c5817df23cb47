package listing

import (
	"testing"

	"sdtconvert/internal/locate"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// FuzzList lists objects and images, with their lines and inlined functions. What
// is in the file may lead to errors, never to a panic or to a site without a
// place.
func FuzzList(f *testing.F) {
	seeds.Add(f)
	files := objects.NewScratch(f)
	o := &Options{
		Conventions: sites.Conventions{Names: patch.DefaultNames(), ProbePrefix: "sdt_", Layouts: linkerset.Layout{}.All()},
		Places:      locate.Options{Lines: true, Inlines: true, Demangle: true, Warn: func(error) {}}, Semaphores: true,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		expect.OK(t, files.Write(data))
		File(files.Path(), o, func(out *Listing) { checkListing(t, out) })
	})
}

func checkListing(t *testing.T, out *Listing) {
	t.Helper()
	if len(out.Errors)+len(out.Probes) == 0 {
		t.Fatal("neither a probe nor an error")
	}
	for _, p := range out.Probes {
		if len(p.Sites) == 0 || p.Function == "" {
			t.Fatalf("a probe without sites, or without a function: %+v", p)
		}
		for _, site := range p.Sites {
			if site.Address == "" || site.Kind == "" || site.State == "" {
				t.Fatalf("%s: %+v", p, site)
			}
		}
	}
}
