package registrytest

import "slices"

// Reference is what a schema refers to.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// schema is what requests carry and answers return.
type schema struct {
	Kind       string      `json:"schemaType,omitempty"` // empty for AVRO
	Text       string      `json:"schema"`
	References []Reference `json:"references,omitempty"`
}

func (s schema) kind() string {
	if s.Kind == "" {
		return "AVRO"
	}
	return s.Kind
}

func (s schema) equal(o schema) bool {
	return s.kind() == o.kind() && s.Text == o.Text && slices.Equal(s.References, o.References)
}

// refusal is an error of the interface.
type refusal struct {
	status, code int
	message      string
}

// Error implements error.
func (e *refusal) Error() string { return e.message }
