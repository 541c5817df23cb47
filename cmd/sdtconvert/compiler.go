package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/provider/cpp"
)

// compilerWords are the compiler of the environment and its flags, nil where none is named.
func (p *program) compilerWords() []string {
	words := line.Split([]byte(p.Getenv("CC")))
	if len(words) == 0 {
		return nil
	}
	return append(words, line.Split([]byte(p.Getenv("CFLAGS")))...)
}

// compilerTarget asks a compiler what it makes objects for. It is "" where there is none,
// or it does not say.
func (p *program) compilerTarget(words []string) string {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return ""
	}
	out, err := p.output(io.Discard, append(words, "-dumpmachine"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// compilerPreprocess has a compiler preprocess a file: $CPP, $CC -E, or cc -E.
func (p *program) compilerPreprocess(o *providerOptions, path string) (string, error) {
	words := line.Split([]byte(p.Getenv("CPP")))
	if len(words) == 0 {
		words = append(line.Split([]byte(p.Getenv("CC"))), "-E")
		if len(words) == 1 {
			words = []string{"cc", "-E"}
		}
	}
	words = append(words, "-x", "c")
	// Compilers define some names that do not begin with _, which a probe may have.
	for _, name := range []string{"linux", "unix", "i386"} {
		words = append(words, "-U"+name)
	}
	words = append(words, o.machineFlags...)
	for _, folder := range o.Folders {
		words = append(words, "-I"+folder)
	}
	words = append(words, definitions(o.Definitions)...)
	for _, header := range o.Headers {
		words = append(words, "-include", header)
	}
	if !filepath.IsAbs(path) {
		path = "./" + path
	}
	out, err := p.output(p.Stderr, append(words, path))
	if err != nil {
		return "", fmt.Errorf("%s: %w; CPP or CC names one that does", strings.Join(words, " "), err)
	}
	return string(out), nil
}

func definitions(all []cpp.Definition) (words []string) {
	for _, d := range all {
		flag := "-D"
		if d.Undef {
			flag = "-U"
		}
		words = append(words, flag+d.Text)
	}
	return words
}

// output runs a program and returns what it writes.
func (p *program) output(stderr io.Writer, words []string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Environ, &out, stderr
	err := cmd.Run()
	return out.Bytes(), err
}
