package main

import (
	"bytes"

	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
)

// result is what came of one file. Nothing is printed before all files ahead
// of it are done, so that the output has the order of the arguments.
type result struct {
	file           string
	stdout, stderr bytes.Buffer
	failed         bool

	manifest bool              // whether one is wanted
	objects  []*manifestObject // for it: the file, or the members of an archive
	object   *manifestObject   // of what is worked on now, if one is wanted
	changed  []*manifestObject // those that are converted once the file is written
}

func newResult(file string, manifest bool) *result {
	r := &result{file: file, manifest: manifest}
	r.begin(file)
	return r
}

// begin turns to an object.
func (r *result) begin(name string) {
	r.object = nil
	if r.manifest {
		r.object = newManifestObject(name)
		r.objects = append(r.objects, r.object)
	}
}

// isArchive says that the objects are those of members, which follow.
func (r *result) isArchive() { r.objects, r.object = nil, nil }

// endMembers turns to the archive itself, of which nothing is told but its faults.
func (r *result) endMembers() { r.object = nil }

// add adds what came of a member of an archive.
func (r *result) add(member *result) {
	r.stdout.Write(member.stdout.Bytes())
	r.stderr.Write(member.stderr.Bytes())
	r.failed = r.failed || member.failed
	r.objects = append(r.objects, member.objects...)
	r.changed = append(r.changed, member.changed...)
}

// willConvert says that the object is converted once its file is written.
func (r *result) willConvert() {
	if r.object != nil {
		r.changed = append(r.changed, r.object)
	}
}

// converted says that the file is written.
func (r *result) converted() {
	for _, object := range r.changed {
		object.Status = statusConverted
	}
}

// fail reports an error of the file.
func (r *result) fail(err error) {
	r.failed = true
	if r.object == nil {
		r.begin(r.file)
	}
	message.Error(&r.stderr, err)
	if r.object != nil {
		r.object.Status = statusFailed
		r.object.Errors = append(r.object.Errors, err.Error())
	}
}

func (r *result) warn(err error) {
	message.Warning(&r.stderr, err)
}

// runAll works on all files of a command, and prints the results.
func (p *program) runAll(s *settings, work func(file string) *result) (failed bool, err error) {
	files, err := input.Distinct(s.files)
	if err != nil {
		return false, err
	}
	progress := newProgress(p.Stderr, len(files))
	defer progress.stop()
	out := newManifestWriter(p.Stdout, s.json)
	parallel.InOrder(len(files), s.jobs, func(i int) *result { return work(files[i]) }, func(i int, r *result) {
		progress.pause()
		if r.stderr.Len() > 0 {
			p.Stderr.Write(r.stderr.Bytes())
		}
		out.object(r)
		failed = failed || r.failed
		progress.resume(i + 1)
	})
	return failed, out.close()
}
