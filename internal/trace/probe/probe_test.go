package probe

import (
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

func TestFormats(t *testing.T) {
	word, small := arch.Operand{Kind: arch.InRegister, Size: 8}, arch.Operand{Kind: arch.InRegister, Size: 4}
	for typ, want := range map[string]Format{
		"char *": Text, "const char*": Text, "char **": Pointer, "struct shop *": Pointer, "_Bool": Boolean, "unsigned long": Number,
		"": Pointer, "string": Text, "const std::type_info *": TypeName, "char [16]": Text, "uintptr_t": Pointer,
	} {
		expect.Equal(t, want, formatOf(typ, &word, 8), "%s", typ)
	}
	expect.Equal(t, Number, formatOf("", &small, 8))
	expect.Equal(t, Float, formatOf("", &arch.Operand{Size: 4, Float: true}, 8))
	expect.Equal(t, Float, formatOf("const float", &small, 8))
	expect.Equal(t, Pointer, formatOf("double *", &word, 8))
}

func TestDemangle(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN4shop7counterIiE3addEi": "shop::counter<int>::add", "_ZN4shop5orderEv.cold": "shop::order", "main": "main", "_Zx": "_Zx",
		"_RNvC6_123foo3bar": "123foo::bar",
	} {
		expect.Equal(t, want, Demangle(name), "%s", name)
	}
}

func TestLengths(t *testing.T) {
	for _, name := range []string{"name_len", "name_length", "namelen", "name_size"} {
		expect.Equal(t, true, isLength("name", name), "%s", name)
	}
	for _, name := range []string{"", "name", "name_lens", "other_len", "nameless"} {
		expect.Equal(t, false, isLength("name", name), "%s", name)
	}
	expect.Equal(t, false, isLength("", "len"))
	parameters := []Parameter{{Name: "n"}, {Name: "text", Length: "n"}, {Name: "text_len"}, {Name: "other", Length: "none"}, {Name: "name"}, {Name: "name_len"}}
	for i, want := range []int{-1, 0, -1, -1, 5, -1} {
		expect.Equal(t, want, lengthOf(parameters, i), "%d", i)
	}
}
