package linkerset_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// Records of a later version are told from names of others that begin like them.
func TestCheckVersion(t *testing.T) {
	tools.Need(t, "as")
	for name, want := range map[string]string{
		"sdt_instances2_set": "2", "set_sdt_instances12_set": "12", "sdt_isenabled3_rel": "3", "sdt_instances2": "2",
		"sdt_instances_set": "", "sdt_instances1_set": "", "sdt_instances02_set": "", "my_sdt_instances2_set": "", "sdt_instances2_sets": "",
	} {
		source, object := filepath.Join(t.TempDir(), "a.s"), filepath.Join(t.TempDir(), "a.o")
		disk.Write(t, source, ".section "+name+",\"aw\"\n.quad 0\n")
		tools.Must(t, "as", "-o", object, source)
		data := disk.Read(t, object)
		o := expect.Value(elfreloc.Open(strings.NewReader(string(data)), int64(len(data)), "a.o"))(t)
		if want == "" {
			expect.OK(t, linkerset.CheckVersion(o))
		} else {
			expect.Error(t, linkerset.CheckVersion(o), "a.o: "+name+": records of version "+want+", and this program reads version 1; use a later sdtconvert")
		}
	}
}
