package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"sdtconvert/internal/replace"
)

// watchSignals makes an interrupted run leave no temporary file behind. A run
// without anything to write does without it.
func watchSignals() { signalsWatched.Do(watch) }

// signalsWatched is done when somebody watches.
var signalsWatched sync.Once

func watch() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		sig := <-c
		replace.Abandon()
		status := 1
		if n, ok := sig.(syscall.Signal); ok {
			status = 128 + int(n) // as shells report a death by signal
		}
		os.Exit(status)
	}()
}
