package ld

import (
	"sdtconvert/internal/input"
	"sdtconvert/internal/replace"
	"sdtconvert/patch"
)

// Conversion says how inputs are converted.
type Conversion struct {
	Patch                                patch.Options
	Jobs, Files                          int
	FollowThin, Verbose, KeepTime, Fresh bool
	Planned                              func(o *input.Object, plan *patch.Plan) error
	Writer                               *replace.Writer
}

// Converter makes what converts a file to a target.
type Converter func(c Conversion) func(file, target string) *Result

// Result is what came of a file.
type Result struct {
	Lines, Messages []byte
	Failed          bool
}
