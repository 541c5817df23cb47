// Package parallel works on many files with a bounded number of threads.
package parallel

import (
	"sync"
	"sync/atomic"
)

// Each calls work with each number below n, with at most jobs threads. The last of
// them is the caller's.
func Each(n, jobs int, work func(i int)) {
	if n >= manyFiles {
		ReserveHeap()
	}
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

// manyFiles is how many files are worth a ReserveHeap.
const manyFiles = 32

// share returns how many files a thread takes at a time. Neighbours are often of one
// directory, where threads would wait for each other to create and rename files; but
// all threads are to be busy to the end.
func share(files, jobs int) int {
	const most, turns = 16, 8
	return max(1, min(most, files/(jobs*turns)))
}

// InOrder calls work with each number below n, as Each does, and hands all results
// to done in the order of the numbers, one at a time. The goroutine that finishes
// the next in turn hands over what is ready, so that none has to be woken for it.
func InOrder[R any](n, jobs int, work func(i int) R, done func(i int, r R)) {
	results, ready := make([]R, n), make([]bool, n)
	var mu sync.Mutex // of results, ready, turn, and the calls of done
	turn := 0
	Each(n, jobs, func(i int) {
		r := work(i)
		mu.Lock()
		defer mu.Unlock()
		results[i], ready[i] = r, true
		for ; turn < n && ready[turn]; turn++ {
			done(turn, results[turn])
			results[turn] = *new(R)
		}
	})
}
