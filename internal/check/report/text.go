package report

import (
	"bufio"
	"fmt"
	"io"

	"sdtconvert/internal/message"
)

// text has a line for each finding, and one that sums them up.
type text struct{}

func (text) Write(out io.Writer, r *Report) error {
	w := bufio.NewWriter(out)
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, prefix := range []string{f.File, f.Place} {
			if prefix != "" {
				fmt.Fprintf(w, "%s: ", message.OneLine(prefix))
			}
		}
		fmt.Fprintf(w, "%s: %s [%s]\n", f.Rule.Severity, message.OneLine(r.sentence(f)), f.Rule.Name)
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}
