package lines

// ReadRows decodes all line tables, and returns how many rows they have.
func (t *Table) ReadRows() (n int) {
	for i := range t.units {
		n += len(t.program(&t.units[i]).rows)
	}
	return n
}

// ReadEntries decodes the entries of all units, and returns how many functions and
// inlined copies of them have code.
func (t *Table) ReadEntries() (n int) {
	for i := range t.units {
		n += len(t.scopesOf(&t.units[i]).list)
	}
	return n
}
