package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sdtconvert/internal/check"
)

// Whatever names are in an error, it is one line, and no command for a terminal.
func TestErrorsAreLines(t *testing.T) {
	var out bytes.Buffer
	printError(&out, errors.Join(errors.New("a\n::error::b"), errors.New("c\x1b[31m\r\u0085"), errors.New("ü\xff\t'\\")))
	if want := "sdtconvert: a\\n::error::b\nsdtconvert: c\\x1b[31m\\r\\u0085\nsdtconvert: ü\xff\\t'\\\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// A finding is one line too.
func TestFindingsAreLines(t *testing.T) {
	name := "x\n::error::y"
	r := &checkReport{gone: []string{"live-call " + name}, findings: []check.Finding{
		{Rule: check.LiveCall, File: name, Place: name, Function: name, Source: name, Line: 1, Probe: name, Message: name},
	}}
	var out bytes.Buffer
	if err := reportText(r, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}
