package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"maps"
	"slices"
	"strings"
)

// Type is a type of C, with all aliases resolved.
type Type struct {
	Name        string           // "char *", "enum color"; "" if it is not known
	Enumerators map[int64]string // nil if it is no enumeration
}

func (a Type) equal(b Type) bool { return a.Name == b.Name && maps.Equal(a.Enumerators, b.Enumerators) }

// DeclaredTypes returns the types of the parameters of functions, as Prototypes finds them. A function whose declarations
// differ is not there.
func (t *Lines) DeclaredTypes(wanted func(name string) bool, count int) (map[string][]Type, error) {
	declared, err := t.declarations(wanted, count)
	all := make(map[string][]Type)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		for i, parameters := range declared[name] {
			var types []Type
			for _, e := range parameters {
				typ, typeErr := t.resolveType(e)
				err = cmp.Or(err, typeErr)
				types = append(types, typ)
			}
			if i > 0 && !slices.EqualFunc(types, all[name], Type.equal) {
				delete(all, name)
				break
			}
			all[name] = types
		}
	}
	return all, t.wrap(err)
}

// Types returns types by their names: of aliases, and of enumerations without "enum". A name of C++ may lack its
// namespaces. One that stands for several types is not there.
func (t *Lines) Types(wanted func(name string) bool) (map[string]Type, error) {
	found, several := make(map[string]Type), make(map[string]bool)
	for i := range t.units {
		var scopes []string // by depth
		err := t.entries(&t.units[i], t.units[i].entry, func(e *dwarf.Entry, depth int) error {
			name, _ := e.Val(dwarf.AttrName).(string)
			scopes = append(scopes[:min(depth, len(scopes))], name)
			switch e.Tag {
			case dwarf.TagCompileUnit, dwarf.TagPartialUnit, dwarf.TagNamespace:
				return nil
			case dwarf.TagTypedef, dwarf.TagEnumerationType:
			default:
				return errSkipChildren
			}
			for _, name := range []string{name, strings.Join(scopes[1:], "::")} {
				if name == "" || !wanted(name) {
					continue
				}
				typ, err := t.typeAt(e)
				if err != nil {
					return err
				}
				if other, ok := found[name]; ok && !other.equal(typ) {
					several[name] = true
				}
				found[name] = typ
			}
			return errSkipChildren
		})
		if err != nil {
			return found, t.wrap(err)
		}
	}
	maps.DeleteFunc(found, func(name string, _ Type) bool { return several[name] })
	return found, nil
}

// resolveType returns the type of an entry, such as a parameter.
func (t *Lines) resolveType(e *dwarf.Entry) (Type, error) {
	next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return Type{}, nil
	}
	_, typ, err := t.at(next)
	if err != nil || typ == nil {
		return Type{}, err
	}
	return t.typeAt(typ)
}

// typeAt returns the type that an entry describes.
func (t *Lines) typeAt(e *dwarf.Entry) (Type, error) {
	stars := ""
	for range maxTypes {
		name, _ := e.Val(dwarf.AttrName).(string)
		switch e.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagAtomicType:
		case dwarf.TagPointerType, dwarf.TagArrayType:
			stars += "*"
		case dwarf.TagEnumerationType:
			typ := Type{Name: strings.TrimSpace("enum " + name + " " + stars)}
			if stars != "" {
				return typ, nil
			}
			var err error
			typ.Enumerators, err = t.enumerators(e)
			return typ, err
		case dwarf.TagBaseType:
			return Type{Name: strings.TrimSpace(name + " " + stars)}, nil
		default:
			return Type{Name: strings.TrimSpace("struct " + name + " " + stars)}, nil
		}
		next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			return Type{Name: strings.TrimSpace("void " + stars)}, nil
		}
		_, inner, err := t.at(next)
		if err != nil || inner == nil {
			return Type{}, err
		}
		e = inner
	}
	return Type{}, nil
}

// enumerators returns the names of an enumeration's values. Of several names of a value the first counts.
func (t *Lines) enumerators(e *dwarf.Entry) (map[int64]string, error) {
	names := make(map[int64]string)
	u, _, err := t.at(e.Offset)
	if err != nil || u == nil {
		return names, err
	}
	err = t.entries(u, e.Offset, func(e *dwarf.Entry, depth int) error {
		name, _ := e.Val(dwarf.AttrName).(string)
		value, ok := e.Val(dwarf.AttrConstValue).(int64)
		if _, known := names[value]; depth == 1 && ok && !known {
			names[value] = name
		}
		return nil
	})
	return names, err
}
