package ld

import (
	"maps"
	"sync"

	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// runState is what changes while a linker runs under supervision. Each run has its own, and returns a runResult
// of it. The opens of the linker, and of what it starts, are answered by several goroutines.
type runState struct {
	mu            sync.Mutex // of the rest
	isStopped     bool
	mustRunAgain  bool   // a file that the linker found after it read the definitions needs others
	hasConverted  bool   // the linker has read converted bytes
	foreignScript string // that it has read, whose TARGET is of another format than ELF, or ""
	definitions   definitionsRead
	found         map[supervise.Identity]*foundFile
	order         []*foundFile // found, in the order of the opens
	opened        map[*servedFile]bool
	codeReads     map[*servedFile][]string // the paths by which the linker has read files in whose place it gets generated code

	converting sync.WaitGroup // found files that are not ready
}

// foundFile is a file that the look has missed and the linker has opened.
type foundFile struct {
	*servedFile               // converted once it is ready
	ready       chan struct{} // closed then
}

func (f *foundFile) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// definitionsRead are the definitions that the linker has read.
type definitionsRead struct {
	isRead  bool
	objects []string // the probe objects that they define
}

// runResult is what a run leaves. The zero result is that before the first run.
type runResult struct {
	status       process.Status
	isStopped    bool // because of a file, or because the linker has to run again
	mustRunAgain bool // a file of found needs more than the definitions that the linker has read

	found         []*servedFile // files that the look has missed
	opened        map[*servedFile]bool
	hasConverted  bool   // the linker has read converted bytes
	foreignScript string // that it has read, whose TARGET is of another format than ELF, or ""
}

// newRunState returns the state at the beginning of a run that follows another one.
func newRunState(before runResult) *runState {
	s := &runState{
		hasConverted: before.hasConverted, foreignScript: before.foreignScript,
		found: map[supervise.Identity]*foundFile{}, opened: maps.Clone(before.opened), codeReads: map[*servedFile][]string{},
	}
	if s.opened == nil {
		s.opened = map[*servedFile]bool{}
	}
	return s
}

// result waits for the files that are converted, and returns the result of a run that ended with a status.
func (s *runState) result(status process.Status) runResult {
	s.converting.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := runResult{
		status: status, isStopped: s.isStopped, mustRunAgain: s.mustRunAgain,
		opened: maps.Clone(s.opened), hasConverted: s.hasConverted, foreignScript: s.foreignScript,
	}
	for _, f := range s.order {
		r.found = append(r.found, f.servedFile)
		r.opened[f.servedFile] = true
	}
	return r
}

// stop records that the linker is stopped. It reports whether this is the first reason.
func (s *runState) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst := !s.isStopped
	s.isStopped = true
	return isFirst
}

// wasStopped reports whether the linker is stopped.
func (s *runState) wasStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isStopped
}

// find returns the file of an identity that the look has missed. If the linker comes to it for the first time,
// convert completes it, in a goroutine of its own.
func (s *runState) find(id supervise.Identity, convert func(*servedFile)) *foundFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.found[id]; f != nil {
		return f
	}
	f := &foundFile{&servedFile{identity: id}, make(chan struct{})}
	s.found[id], s.order = f, append(s.order, f)
	s.converting.Go(func() {
		convert(f.servedFile)
		close(f.ready)
	})
	return f
}

// open records that the linker reads a file. It reports whether the linker is to run again instead.
func (s *runState) open(f *servedFile) (runsAgain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[f] = true
	return s.mustRunAgain
}

// readCode records that the linker reads a file in whose place it gets generated code, and returns the paths by which it has read
// the file before.
func (s *runState) readCode(f *servedFile, path string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.codeReads[f]
	s.codeReads[f] = append(before[:len(before):len(before)], path)
	return before
}

// scriptOfMixedFormats records what a file, which the linker reads next, says of formats. If the link then has
// both converted bytes and a script whose TARGET is of another format than ELF, it returns the name of that
// script, otherwise "".
func (s *runState) scriptOfMixedFormats(f *servedFile) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.hasForeignTarget {
		s.foreignScript = f.name
	}
	s.hasConverted = s.hasConverted || f.isConverted && !f.isData
	if s.hasConverted {
		return s.foreignScript
	}
	return ""
}

// readsConverted reports whether the linker has read converted bytes.
func (s *runState) readsConverted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasConverted
}

// filesBeforeDefinitions returns, of files that the look has found, those that the linker has opened, or all of
// them, and the files that only the linker has found, once they are ready.
func (s *runState) filesBeforeDefinitions(files []*servedFile, includeUnopened bool) []*servedFile {
	s.mu.Lock()
	var linked []*servedFile
	for _, f := range files {
		if includeUnopened || s.opened[f] {
			linked = append(linked, f)
		}
	}
	found := s.order[:len(s.order):len(s.order)]
	s.mu.Unlock()
	for _, f := range found {
		<-f.ready
		linked = append(linked, f.servedFile)
	}
	return withoutData(linked)
}

// filesWhileConverting returns the files that the look has found, and those found by the linker that are ready.
// current counts as ready.
func (s *runState) filesWhileConverting(files []*servedFile, current *servedFile) []*servedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	linked := files[:len(files):len(files)]
	for _, f := range s.order {
		if f.servedFile == current || f.isReady() {
			linked = append(linked, f.servedFile)
		}
	}
	return withoutData(linked)
}

// recordDefinitions records which probe objects the linker has read definitions of.
func (s *runState) recordDefinitions(objects []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.definitions = definitionsRead{true, objects}
}

// definitionsSoFar returns the definitions that the linker has read.
func (s *runState) definitionsSoFar() definitionsRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.definitions
}

// recordLackingDefinition records that the linker is to run again.
func (s *runState) recordLackingDefinition() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRunAgain = true
}
