package ld

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
	"sdtconvert/internal/testkit/expect"
)

// served returns a file of a name, changed by a function.
func served(name string, change func(*servedFile)) *servedFile {
	f := &servedFile{inputFile: &inputFile{path: name, name: name}, descriptor: -1}
	if change != nil {
		change(f)
	}
	return f
}

// names returns the names of files.
func names(files []*servedFile) string {
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	return strings.Join(names, " ")
}

// A script of another format and converted bytes do not go together, whatever the linker reads first, and in
// which run.
func TestScriptOfMixedFormats(t *testing.T) {
	files := map[string]*servedFile{
		"script":    served("script", func(f *servedFile) { f.hasForeignTarget = true }),
		"converted": served("converted", func(f *servedFile) { f.isConverted = true }),
		"binary":    served("binary", func(f *servedFile) { f.isConverted, f.isData = true, true }),
		"plain":     served("plain", nil),
	}
	for order, want := range map[string]string{
		"script plain binary":           "",
		"converted plain binary":        "",
		"script converted":              "script",
		"converted script":              "script",
		"converted plain script plain":  "script",
		"script | plain converted":      "script",
		"converted | script":            "script",
		"script | plain | binary plain": "",
	} {
		s, got := newRunState(runResult{}), ""
		for word := range strings.FieldsSeq(order) {
			if word == "|" {
				s = newRunState(s.result(process.Status{}))
				continue
			}
			got = s.scriptOfMixedFormats(files[word])
		}
		expect.Equal(t, want, got, "%s", order)
	}
}

// The first reason to stop is the one that is printed.
func TestStop(t *testing.T) {
	s := newRunState(runResult{})
	expect.Equal(t, false, s.result(process.Status{}).isStopped)
	expect.Equal(t, []bool{true, false, false}, []bool{s.stop(), s.stop(), s.stop()})
	expect.Equal(t, true, s.result(process.Status{}).isStopped)
	expect.Equal(t, false, newRunState(s.result(process.Status{})).isStopped, "a run begins stopped")
}

// Generated code takes the place of a file once in each run.
func TestCodeIsReadOnce(t *testing.T) {
	a, b := served("a", nil), served("b", nil)
	s := newRunState(runResult{})
	for _, f := range []*servedFile{a, b} {
		expect.Equal(t, nil, s.readCode(f, "a"))
		expect.Equal(t, []string{"a"}, s.readCode(f, "./a"))
		expect.Equal(t, []string{"a", "./a"}, s.readCode(f, "a"))
	}
	expect.Equal(t, nil, newRunState(s.result(process.Status{})).readCode(a, "a"))
}

// A file that many threads come to is converted once, and is in the result.
func TestFind(t *testing.T) {
	s := newRunState(runResult{})
	var conversions atomic.Int32
	begun, goOn := make(chan bool), make(chan bool)
	convert := func(f *servedFile) {
		conversions.Add(1)
		f.inputFile = served("found", nil).inputFile
		close(begun)
		<-goOn
	}
	f := s.find(supervise.Identity{}, convert)
	<-begun
	expect.Equal(t, false, f.isReady())
	expect.Equal(t, "known", names(s.filesWhileConverting([]*servedFile{served("known", nil)}, nil)), "while it is converted")
	expect.Equal(t, "known found", names(s.filesWhileConverting([]*servedFile{served("known", nil)}, f.servedFile)), "for itself")
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() {
			<-s.find(supervise.Identity{}, convert).ready
		})
	}
	close(goOn)
	threads.Wait()
	expect.Equal(t, 1, conversions.Load())
	expect.Equal(t, "known found", names(s.filesWhileConverting([]*servedFile{served("known", nil)}, nil)), "when it is ready")
	r := s.result(process.Status{Code: 3})
	expect.Equal(t, 1, len(r.found))
	expect.Equal(t, "found", r.found[0].name)
	expect.Equal(t, true, r.opened[r.found[0]])
	expect.Equal(t, process.Status{Code: 3}, r.status)
}

// Definitions are of what the linker has read before them: of all files, if it opens them later.
func TestLinkedBefore(t *testing.T) {
	a, b := served("a", nil), served("b", nil)
	binary := served("binary", func(f *servedFile) { f.isData = true })
	files := []*servedFile{a, binary, b}
	s := newRunState(runResult{})
	s.open(b)
	s.open(binary)
	s.find(supervise.Identity{}, func(f *servedFile) { f.inputFile = served("found", nil).inputFile })
	expect.Equal(t, "b found", names(s.filesBeforeDefinitions(files, false)))
	expect.Equal(t, "a b found", names(s.filesBeforeDefinitions(files, true)))
	after := newRunState(s.result(process.Status{}))
	expect.Equal(t, "b", names(after.filesBeforeDefinitions(files, false)), "in the next run")
}

// The linker runs again if a file lacks a definition that was read, and opens nothing more before.
func TestLackingDefinition(t *testing.T) {
	a := served("a", nil)
	s := newRunState(runResult{})
	expect.Equal(t, definitionsRead{}.isRead, s.definitionsSoFar().isRead)
	s.recordDefinitions([]string{"x", "y"})
	d := s.definitionsSoFar()
	expect.Equal(t, []bool{true, false, false, true}, []bool{d.isRead, d.lack([]string{"x"}), d.lack([]string{"y", "x"}), d.lack([]string{"x", "z"})})
	expect.Equal(t, true, definitionsRead{isRead: true}.lack([]string{"x"}))
	expect.Equal(t, false, s.open(a))
	s.recordLackingDefinition()
	expect.Equal(t, true, s.open(a))
	r := s.result(process.Status{})
	expect.Equal(t, true, r.mustRunAgain)
	expect.Equal(t, false, newRunState(r).open(a))
}

// The plan of another run knows what the run before has found, and leaves the plan before as it was.
func TestNextRun(t *testing.T) {
	known := served("known", nil)
	p := runPlan{conversion: conversion{}.withFiles(known)}
	p.flags = []string{"-u", "x"}
	s := newRunState(runResult{})
	found := s.find(supervise.Identity{}, func(f *servedFile) { f.inputFile = served("found", nil).inputFile }).servedFile
	s.scriptOfMixedFormats(served("script", func(f *servedFile) { f.hasForeignTarget = true }))
	r := s.result(process.Status{})
	again := expect.Value(p.nextRun(r))(t)
	if !slices.Equal(again.conversion.files, []*servedFile{known, found}) || again.conversion.byIdentity[supervise.Identity{}] != found {
		t.Errorf("the next run knows %v", again.conversion.files)
	}
	expect.Equal(t, []string{"-u", "x"}, again.flags)
	expect.Equal(t, true, again.definesAll)
	expect.Equal(t, true, again.definitions != "")
	expect.Equal(t, "script", newRunState(again.before).foreignScript)
	if !slices.Equal(p.conversion.files, []*servedFile{known}) || p.definesAll || p.definitions != "" || p.conversion.byIdentity[supervise.Identity{}] != known {
		t.Error("the plan before has changed")
	}
}
