package main

import (
	"bytes"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
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
	printError(&r.stderr, err)
	if r.object != nil {
		r.object.Status = statusFailed
		r.object.Errors = append(r.object.Errors, err.Error())
	}
}

func (r *result) warn(err error) {
	printWarning(&r.stderr, err)
}

// pool runs work on each file with a bounded number of threads, and hands the
// results to done in the order of the files. Whoever finishes the file that is
// next in turn hands over what is ready, so that nobody has to be woken for it.
// Concurrency is here alone, and where a large file is copied.
func pool(files []string, jobs int, work func(file string) *result, done func(i int, r *result)) {
	results := make([]*result, len(files))
	var mu sync.Mutex // of results, turn, and the calls of done
	turn := 0
	finish := func(i int, r *result) {
		mu.Lock()
		defer mu.Unlock()
		results[i] = r
		for ; turn < len(files) && results[turn] != nil; turn++ {
			done(turn, results[turn])
			results[turn] = nil
		}
	}
	parallel(len(files), jobs, func(i int) { finish(i, work(files[i])) })
}

// share is how many files a thread takes at a time. Neighbours are often of one
// folder, where threads would wait for each other to create and rename files; but
// all threads are to be busy to the end.
func share(files, jobs int) int {
	const most, turns = 16, 8
	return max(1, min(most, files/(jobs*turns)))
}

// collectLess makes the garbage collector run less often: a file leaves little
// behind, and the process soon ends, so that costs little memory and saves much
// time. For one small file it is not worth the call.
var collectLess = sync.OnceFunc(func() { debug.SetGCPercent(400) })

const largeFile = 1 << 20 // bytes

// runAll works on all files of a command, and prints the results.
func runAll(s *settings, stdout, stderr io.Writer, work func(file string) *result) (failed bool, err error) {
	files, err := distinct(s.files)
	if err != nil {
		return false, err
	}
	if len(files) > 1 {
		collectLess()
	}
	progress := newProgress(stderr, len(files))
	defer progress.stop()
	out := newManifestWriter(stdout, s.json)
	pool(files, s.jobs, work, func(i int, r *result) {
		progress.pause()
		if r.stderr.Len() > 0 {
			stderr.Write(r.stderr.Bytes())
		}
		out.object(r)
		failed = failed || r.failed
		progress.resume(i + 1)
	})
	return failed, out.close()
}

// parallel calls work with each number below n, with a bounded number of threads.
// The last of them is the caller's.
func parallel(n, jobs int, work func(i int)) {
	step := share(n, jobs)
	var next atomic.Int64
	worker := func() {
		for {
			end := int(next.Add(int64(step)))
			for i := end - step; i < min(end, n); i++ {
				work(i)
			}
			if end >= n {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for range min(jobs, n) - 1 {
		wg.Go(worker)
	}
	worker()
	wg.Wait()
}
