package toolchains

// Feature is what not every linker can do.
type Feature int

const (
	StaticPIE       Feature = iota // -static-pie
	RELR                           // -z pack-relative-relocs
	DynamicRELR                    // the same, with a dynamic loader
	Scripts                        // SECTIONS in linker scripts
	CrossReferences                // --cref
	GCCPlugin                      // GCC's plugin for link-time optimisation
	PluginWithR                    // the same with -r
	GroupsWithR                    // what -r makes of COMDAT groups can be linked
	RetainWithR                    // what -r makes of SHF_GNU_RETAIN is retained
)

// Linker is a linker of others.
type Linker struct {
	Name    string
	Path    string // its program
	Family  string // by which a compiler's -fuse-ld calls it
	Package string // Debian's
	// Cannot says of features that the linker has not why a test passes them over.
	Cannot map[Feature]string
	old    bool // there is a newer one of its family
}

const binutils = "binutils"

// linkers are all of them, with the native names.
var linkers = []Linker{
	{Name: "bfd", Path: "ld.bfd", Family: "bfd", Package: binutils},
	{Name: "gold", Path: "ld.gold", Family: "gold", Package: binutils, Cannot: map[Feature]string{
		StaticPIE:   "gold makes no static PIE",
		RELR:        "gold makes no SHT_RELR",
		RetainWithR: "gold forgets what is to be retained",
	}},
	{Name: "lld14", Path: "ld.lld-14", Family: "lld", Package: "lld-14", old: true, Cannot: lldCannot},
	{Name: "lld19", Path: "ld.lld-19", Family: "lld", Package: "lld-19", Cannot: lldCannot},
	{Name: "mold", Path: "mold", Family: "mold", Package: "mold", Cannot: map[Feature]string{
		DynamicRELR:     "glibc loads no SHT_RELR of mold",
		Scripts:         "mold takes no SECTIONS",
		CrossReferences: "mold has no --cref",
		PluginWithR:     "mold 1.10 makes local what the plugin generates with -r",
		GroupsWithR:     "mold 1.10 merges sections of different groups",
	}},
}

var lldCannot = map[Feature]string{
	GCCPlugin:   "lld takes no plugin of GCC",
	PluginWithR: "lld takes no plugin of GCC",
}

// Can tells whether a linker has a feature.
func (l Linker) Can(f Feature) bool { return l.Cannot[f] == "" }

// Use is the option that has a compiler's driver take a linker of this family.
func (l Linker) Use() string { return "-fuse-ld=" + l.Family }
