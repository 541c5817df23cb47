package x86

import (
	"regexp"
	"sync"
)

// symbol matches the name of a symbol. Names of registers follow %.
var symbol = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^%\w.])[A-Za-z_.]`) })

// Unread returns gdb for an operand with the name of a symbol.
func Unread(place string) (tracer string) {
	if symbol().MatchString(place) {
		return "gdb"
	}
	return ""
}
