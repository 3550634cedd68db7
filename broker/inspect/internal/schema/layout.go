package schema

// Schema is the layout of one message type in all its versions.
type Schema struct {
	Name string
	From string
	// Key is the number that names the type in its log; -1 where the place says what it is.
	Key      int16
	versions map[int16][]field
}

// field is one field of a struct. Tagged ones stand together in a field with the name tagged.
type field struct {
	name string
	kind *kind
	tags map[uint64]field
}

const tagged = "_tagged"

// kind is the type of a field; exactly one of primitive, array and fields is set.
type kind struct {
	primitive       string
	array           *kind
	compact, isNull bool // of an array: how its length is written, and whether it may be null
	fields          []field
	nullable        bool // of a struct
}

// Has tells whether the type has a version.
func (s *Schema) Has(version int16) bool { return s.versions[version] != nil }
