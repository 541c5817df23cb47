package main

import "testing"

func TestLinkerName(t *testing.T) {
	for program, want := range map[string]string{
		"ld": "ld", "/opt/wrap/ld": "ld", "./ld.lld-20": "ld.lld-20", "ld.exe": "ld", "mold": "mold",
		"x86_64-linux-gnu-ld": "x86_64-linux-gnu-ld", "/x/aarch64-linux-gnu-ld.bfd": "aarch64-linux-gnu-ld.bfd",
		"sdtconvert": "", "/usr/bin/sdtconvert": "", "sdtconvert-ld": "", "sdtconvert.test": "", "ldd": "", "x-ldap": "", "build": "", "": "",
	} {
		name := programName(program)
		if ok := isLinkerName(name); ok != (want != "") || ok && name != want {
			t.Errorf("%s: %q, %v", program, name, ok)
		}
	}
}
