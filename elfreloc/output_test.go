package elfreloc_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// longOutput has every kind of extent, each longer than a window where it is read.
func longOutput(in []byte) *elfreloc.Output {
	n := int64(len(in))
	other := bytes.NewReader(bytes.Repeat([]byte("other"), len(in)))
	out := &elfreloc.Output{Extents: []elfreloc.Extent{
		{Src: 7, Len: n - 7},
		{Data: []byte("data"), Len: 4},
		{Src: 3, Len: n - 9},
		{Src: 1, Len: n, From: other},
	}}
	for _, x := range out.Extents {
		out.Size += x.Len
	}
	return out
}

func longInput() []byte {
	in := make([]byte, 2*elfreloc.BlockSize+1234)
	for i := range in {
		in[i] = byte(i * 31 >> 3)
	}
	return in
}

func TestOutputsAreWrittenAsTheyAreRead(t *testing.T) {
	in := longInput()
	out := longOutput(in)
	want := expect.Value(objects.Assemble(out, in))(t)
	var got bytes.Buffer
	expect.OK(t, out.Write(&got, bytes.NewReader(in)))
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("what is written differs")
	}
	read := expect.Value(io.ReadAll(io.NewSectionReader(out.Reader(bytes.NewReader(in)), 0, out.Size)))(t)
	if !bytes.Equal(read, want) {
		t.Error("what is read differs")
	}
}

func TestOutputsOfInputsThatAreTooShortAreErrors(t *testing.T) {
	in := longInput()
	short := bytes.NewReader(in[:len(in)-10])
	if err := longOutput(in).Write(io.Discard, short); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want an error that names the end", err)
	}
}

func TestErrorsOfWritersAreReturned(t *testing.T) {
	wrong := errors.New("wrong")
	in := longInput()
	out := longOutput(in)
	r, w := io.Pipe()
	r.CloseWithError(wrong)
	if err := out.Write(w, bytes.NewReader(in)); !errors.Is(err, wrong) {
		t.Errorf("of the writer: got %v", err)
	}
}
