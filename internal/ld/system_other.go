//go:build !unix

package ld

// stopReading waits for the end of the pipe.
func (p *pipe) stopReading() {}

func (p *pipe) drain() {}
