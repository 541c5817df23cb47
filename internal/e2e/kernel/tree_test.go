package kernel

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// newTree has scripts/kernel-tree make a directory to build modules in, and returns
// its name and the variables that make is to be told. It fails the test if the
// headers that the directory is made of are others when the test ends.
func newTree(t *testing.T, root string) (tree string, variables []string) {
	t.Helper()
	headers, err := filepath.Glob(root + "/usr/src/linux-headers-*-amd64")
	if err != nil || len(headers) == 0 {
		tools.Unavailable(t, "no linux-headers-amd64")
	}
	before := snapshot(t, headers)
	t.Cleanup(func() {
		expect.Equal(t, before, snapshot(t, headers), "the headers before (-) and after (+)")
	})
	tree = filepath.Join(t.TempDir(), "tree")
	script := exec.Command("../../../scripts/kernel-tree", tree)
	script.Env = append(os.Environ(), "root="+root)
	out, err := script.Output()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no kernel: %v", err) // there may be no network
	} else if err != nil {
		t.Fatal(err)
	}
	return tree, strings.Fields(string(out))
}

// snapshot returns the kind, size and time of each file in directories.
func snapshot(t *testing.T, directories []string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
			}
			return err
		})
		expect.OK(t, err)
	}
	return files
}

// TestTree makes a tree of headers as those of Linux 6.12 are, with a vmlinux and a
// resolve_btfids: the tree has these, and nothing is written through it.
func TestTree(t *testing.T) {
	tools.Need(t, "openssl")
	root := t.TempDir()
	headers := filepath.Join(root, "usr/src/linux-headers-6.12.0-amd64")
	resolve := "tools/bpf/resolve_btfids/resolve_btfids"
	expect.OK(t, os.MkdirAll(filepath.Join(headers, filepath.Dir(resolve)), 0o777))
	for name, text := range map[string]string{
		"Makefile": "KBUILD_OUTPUT=/usr/src/linux-headers-6.12.0-amd64\n", ".config": "", "vmlinux": "types\n", resolve: "",
	} {
		expect.OK(t, os.WriteFile(filepath.Join(headers, name), []byte(text), 0o777))
	}
	tree, variables := newTree(t, root)
	expect.Equal(t, []string{"CONFIG_MODULE_SIG_KEY=certs/signing_key.pem"}, variables, "variables for make")
	want := strings.TrimPrefix(headers, root) + "/vmlinux"
	expect.Equal(t, want, expect.Value(os.Readlink(filepath.Join(tree, "vmlinux")))(t), "the link vmlinux")
	expect.Equal(t, "KBUILD_OUTPUT="+tree+"\n", string(disk.Read(t, filepath.Join(tree, "Makefile"))), "the Makefile")
}
