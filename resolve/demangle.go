package resolve

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// The limits of Demangle, in bytes. The time that a made-up name takes grows with
// the square of its length: one within the limits takes less than a tenth of a second.
const (
	maxMangled   = 1 << 12
	maxDemangled = 16 // as a power of two
)

// Demangle returns a C++ (Itanium C++ ABI, 5.1) or Rust symbol as the source writes it,
// and any other name as it is. It takes bounded time for any name.
func Demangle(name string) (result string) {
	if len(name) > maxMangled || !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") {
		return name
	}
	defer func() {
		if recover() != nil { // the name is anybody's, and the parser large
			result = name
		}
	}()
	return demangle.Filter(name, demangle.MaxLength(maxDemangled))
}
