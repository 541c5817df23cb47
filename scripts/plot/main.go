// Plot draws the tables of docs/results/cost.md as the pictures that docs/cost.md shows.
//
// scripts/bench-probe --write and scripts/bench-armed --write run it. It is a module of its
// own, so that the product does not need what draws. Each picture ends with a digest of the
// tables, by which internal/design finds one that is out of date.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image/color"
	"log"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// picture has a bar for each wanted cell of a table.
type picture struct {
	file, title, axis string
	heading, before   string   // of the section, and a line of it before the table
	table             string   // what the table's first line begins with
	rows, columns     []string // all if nil
}

// words are what pictures call the loops and forms of the tables.
var words = map[string]string{
	"none_passed": "no arguments", "registers_2": "2 arguments", "registers_6": "6 arguments",
	"computed_2": "2 computed arguments", "computed_6": "6 computed arguments", "tail_call": "at a function's end",
	"memory": "sum in memory", "many_values": "11 values live", "floating": "sum of doubles", "vector": "vectorisable",
	"if (function)": "test of a pointer", "STAP_PROBE": "SystemTap's macro", "--stapsdt": "probe",
	"tested": "probe behind its test", "as a call": "probe as a call",
}

// kernel is the name of a kernel that a build has given it, of which pictures show the version.
var kernel = regexp.MustCompile(`^(\d+\.\d+)\.\d+[-.\w+]*$`)

var (
	loops    = []string{"no probe", "`if (function)`", "`STAP_PROBE`", "**--stapsdt**", "**tested**", "**as a call**"}
	pictures = []picture{
		{file: "cost-gcc.svg", title: "Loops with one probe that nothing traces, gcc 12", axis: "ns an iteration", heading: "### gcc", table: "| loop |", before: "Nanoseconds:", columns: loops},
		{file: "cost-clang.svg", title: "Loops with one probe that nothing traces, clang 19", axis: "ns an iteration", heading: "### Debian clang", table: "| loop |", before: "Nanoseconds:", columns: loops},
		{
			file: "cost-armed.svg", title: "A hit of a traced probe on amd64, by version of Linux", axis: "times SystemTap's macro", heading: "### amd64", table: "| site |", before: "### amd64",
			rows: []string{"call, **--stapsdt**", "call", "tail call, **--stapsdt**", "tail call", "conditional tail call, **--stapsdt**", "conditional tail call"},
		},
	}
	// Colours that colour-blind readers tell apart (Okabe and Ito).
	colours = []color.Color{
		color.RGBA{0x99, 0x99, 0x99, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	}
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("plot: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: plot DIRECTORY, which has cost.md")
	}
	if err := os.Chdir(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	page, err := os.ReadFile("cost.md")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pictures {
		header, rows, err := p.read(string(page))
		if err == nil {
			err = p.draw(header, rows, page)
		}
		if err != nil {
			log.Fatalf("%s: %v", p.file, err)
		}
	}
}

// read returns the names of the wanted columns, and the cells of the wanted rows, each with
// the row's name first.
func (p *picture) read(page string) (header []string, rows [][]string, err error) {
	for _, part := range []string{"\n" + p.heading, p.before, "\n" + p.table} {
		i := strings.Index(page, part)
		if i < 0 {
			return nil, nil, fmt.Errorf("cost.md has no %q", part)
		}
		page = page[i:]
	}
	table, _, _ := strings.Cut(page[1:], "\n\n")
	var wanted []int
	for i, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case i == 0:
			for j, name := range cells {
				if j > 0 && name != "bytes" && (p.columns == nil || slices.Contains(p.columns, name)) {
					wanted, header = append(wanted, j), append(header, plain(name))
				}
			}
		case i > 1 && (p.rows == nil || slices.Contains(p.rows, cells[0])):
			row := []string{plain(cells[0])}
			for _, j := range wanted {
				row = append(row, cells[j])
			}
			rows = append(rows, row)
		}
	}
	return header, rows, nil
}

// plain returns what a picture calls a loop, a form or a kernel: without the marks of Markdown,
// in words, and by its version.
func plain(s string) string {
	s = strings.NewReplacer("*", "", "`", "").Replace(s)
	if word, ok := words[s]; ok {
		return word
	}
	if site, ok := strings.CutSuffix(s, ", --stapsdt"); ok {
		return site + " with a note"
	}
	return kernel.ReplaceAllString(s, "Linux $1")
}

// tables returns the digest of the lines of a page that are of tables.
func tables(page []byte) [sha256.Size]byte {
	var of []byte
	for line := range bytes.Lines(page) {
		if line[0] == '|' {
			of = append(of, line...)
		}
	}
	return sha256.Sum256(of)
}

// draw writes a picture of bars in groups, a group for each row.
func (p *picture) draw(header []string, rows [][]string, page []byte) error {
	plot.DefaultFont.Variant = "Sans"
	pl := plot.New()
	pl.Title.Text = p.title
	pl.Title.Padding = vg.Length(6)
	pl.Y.Label.Text = p.axis
	pl.Y.Min = 0
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.Padding = vg.Length(3)
	pl.BackgroundColor = color.White
	pl.Add(plotter.NewGrid())
	const bar = vg.Length(6)
	for j, name := range header {
		values := make(plotter.Values, len(rows))
		for i, row := range rows {
			number, _, _ := strings.Cut(row[1+j], " ")
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", name, row[0], err)
			}
			values[i] = v
		}
		bars, err := plotter.NewBarChart(values, bar)
		if err != nil {
			return err
		}
		bars.LineStyle.Width = 0
		bars.Color = colours[j%len(colours)]
		bars.Offset = bar * (vg.Length(j) - vg.Length(len(header)-1)/2)
		pl.Add(bars)
		legend.Add(name, bars)
	}
	var names []string
	for _, row := range rows {
		names = append(names, row[0])
	}
	pl.NominalX(names...)
	pl.X.Min, pl.X.Max = -0.6, float64(len(rows))-0.4
	pl.X.Padding = vg.Length(10) // the ends of turned labels stay below the bars
	pl.X.Tick.Label.Rotation = 0.5
	pl.X.Tick.Label.XAlign, pl.X.Tick.Label.YAlign = text.XRight, text.YTop

	// The ticks go on beyond the highest bar, and the legend is beside the bars, so that no line
	// of the grid crosses it.
	pl.Y.Max = math.Ceil(pl.Y.Max*1.05*2) / 2
	const width, beside = 26 * vg.Centimeter, 6 * vg.Centimeter
	canvas := vgsvg.New(width, 11*vg.Centimeter)
	all := draw.New(canvas)
	pl.Draw(draw.Crop(all, vg.Length(4), -beside, 0, -vg.Length(4)))
	legend.Draw(draw.Crop(all, width-beside+vg.Length(8), 0, 0, -vg.Centimeter))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "<!-- of the tables with sha256 %x -->\n", tables(page))
	return os.WriteFile(p.file, b.Bytes(), 0o666)
}
