package object

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// What Write and WriteDOF make is recognised, and what anything else makes is not, even of it.
func TestIsOwn(t *testing.T) {
	directory := t.TempDir()
	check := func(what string, data []byte, want bool) string {
		t.Helper()
		path := filepath.Join(directory, "x.o")
		disk.Write(t, path, data)
		expect.Equal(t, want, IsOwn(path), "%s", what)
		return path
	}
	for _, system := range []System{Linux, FreeBSD, Illumos} {
		target := &Target{System: system}
		expect.OK(t, target.Name("x86_64", nil))
		semaphores := expect.Value(target.Write(providers(), false))(t)
		check("semaphores", semaphores, true)
		withCode := DOF{Providers: one()}
		expect.OK(t, withCode.OpenDrti(assembled(t, ".file \"drti.c\"\nlea __SUNW_dof(%rip), %rax\n")))
		for _, d := range []DOF{{}, {Providers: one()}, {Providers: one(), Lazy: true}, withCode} {
			check(system.String(), expect.Value(target.WriteDOF(d))(t), true)
		}
		tools.Need(t, "ld")
		path := check("semaphores", semaphores, true)
		for _, with := range []string{"\tnop\n", "\t.data\n\t.long 1\n\t.file \"a.c\"\n"} {
			joined := filepath.Join(directory, "joined.o")
			tools.Must(t, "ld", "-r", "-o", joined, path, assembled(t, with))
			check("linked with another", disk.Read(t, joined), false)
		}
	}
	check("compiled", objects.Read(t, "calls.amd64-gcc12-O2.o"), false)
	check("text", []byte("int main;\n"), false)
	check("empty", nil, false)
}
