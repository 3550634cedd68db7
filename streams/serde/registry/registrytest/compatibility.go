package registrytest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hamba/avro/v2"
)

// parses refuses an Avro schema that is none. Those with references are taken as
// they are.
func parses(s schema) error {
	if s.kind() != "AVRO" || len(s.References) > 0 {
		return nil
	}
	if _, err := avro.ParseWithCache(s.Text, "", new(avro.SchemaCache)); err != nil {
		return &refusal{http.StatusUnprocessableEntity, 42201, fmt.Sprintf("Invalid schema %s, details: %v", s.Text, err)}
	}
	return nil
}

func transitive(level string) bool { return strings.HasSuffix(level, "_TRANSITIVE") }

// clash says why a new schema does not go with an older one, by the level.
func clash(level string, older, newer schema) string {
	level = strings.TrimSuffix(level, "_TRANSITIVE")
	switch {
	case level == "NONE":
		return ""
	case older.kind() != newer.kind():
		return fmt.Sprintf("Incompatible because of different schema type: %s and %s", older.kind(), newer.kind())
	case newer.kind() != "AVRO" || len(older.References)+len(newer.References) > 0:
		return ""
	}
	o, errOlder := avro.ParseWithCache(older.Text, "", new(avro.SchemaCache))
	n, errNewer := avro.ParseWithCache(newer.Text, "", new(avro.SchemaCache))
	if errOlder != nil || errNewer != nil {
		return fmt.Sprint(errOlder, errNewer)
	}
	can := avro.NewSchemaCompatibility()
	var err error
	if level != "FORWARD" { // the new one reads what the old one wrote
		err = can.Compatible(n, o)
	}
	if err == nil && (level == "FORWARD" || level == "FULL") {
		err = can.Compatible(o, n)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
