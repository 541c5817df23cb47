package report

import (
	"bufio"
	"fmt"
	"io"

	"sdtconvert/internal/message"
)

// text has a line for each finding, and one that sums them up. A line begins as those of compilers do, with
// the source line, by which editors and CI services find it; or else with the file and the place in it.
type text struct{}

func (text) Write(out io.Writer, r *Report) error {
	w := bufio.NewWriter(out)
	for i := range r.Findings {
		f := &r.Findings[i]
		words := []string{r.sourceLine(f), string(f.Rule.Severity), f.File, f.Place}
		if f.Line == 0 {
			words = []string{f.File, f.Place, string(f.Rule.Severity)}
		}
		for _, word := range words {
			if word != "" {
				fmt.Fprintf(w, "%s: ", message.OneLine(word))
			}
		}
		fmt.Fprintf(w, "%s [%s]\n", message.OneLine(sentence(f)), f.Rule.Name)
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}
