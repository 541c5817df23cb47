package toolchains

// LTO is a compiler and a native linker that do link-time optimisation together.
type LTO struct {
	Compiler Compiler
	Linker   Linker
	Flag     string // of the compiler, which asks for it
}

// LTOs returns the usual ways of link-time optimisation: GCC's plugin in GNU's linkers,
// and lld, which generates thin code of each file apart.
func LTOs() []LTO {
	return []LTO{
		{GCC, AMD64.Linker("bfd"), "-flto"},
		{GCC, AMD64.Linker("gold"), "-flto"},
		{OldClang, AMD64.Linker("old-lld"), "-flto=thin"},
		{Clang, AMD64.Linker("lld"), "-flto=thin"},
		{Clang, AMD64.Linker("lld"), "-flto"},
	}
}
