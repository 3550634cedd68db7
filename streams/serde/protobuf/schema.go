package protobuf

import (
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace/millrace/streams/serde"
)

// builtin are files that registries know by themselves.
func builtin(path string) bool {
	for _, p := range []string{"google/protobuf/", "google/type/", "confluent/"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// fileSchema is a file as a registry takes it, with what it imports.
func fileSchema(f protoreflect.FileDescriptor) (serde.Schema, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(f))
	if err != nil {
		return serde.Schema{}, fmt.Errorf("protobuf: descriptor of %s: %w", f.Path(), err)
	}
	s := serde.Schema{Kind: serde.Protobuf, Text: base64.StdEncoding.EncodeToString(b)}
	for i := range f.Imports().Len() {
		imported := f.Imports().Get(i)
		if builtin(imported.Path()) {
			continue
		}
		below, err := fileSchema(imported.FileDescriptor)
		if err != nil {
			return s, err
		}
		s.Uses = append(s.Uses, serde.Reference{Name: imported.Path(), Schema: below})
	}
	return s, nil
}

// outline finds the messages of a schema, which is a descriptor in base64 or a
// text.
func outline(text string) (*message, error) {
	if b, err := base64.StdEncoding.DecodeString(text); err == nil {
		var f descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(b, &f); err != nil {
			return nil, fmt.Errorf("protobuf: the schema is no descriptor: %w", err)
		}
		root := new(message)
		root.addAll(f.GetPackage(), f.GetMessageType(), nil)
		return root, nil
	}
	return outlineOf(text)
}

// addAll adds messages of a descriptor. Those that the compiler made up, of maps
// and groups, do not count: a schema's text does not have them, and Confluent's
// serializer for Java counts by the text.
func (m *message) addAll(prefix string, all []*descriptorpb.DescriptorProto, fields []*descriptorpb.FieldDescriptorProto) {
	for _, d := range all {
		name := joined(prefix, d.GetName())
		if d.GetOptions().GetMapEntry() || isGroup(name, fields) {
			continue
		}
		child := &message{name: name}
		child.addAll(name, d.GetNestedType(), d.GetField())
		m.nested = append(m.nested, child)
	}
}

func isGroup(name string, fields []*descriptorpb.FieldDescriptorProto) bool {
	for _, f := range fields {
		if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_GROUP && f.GetTypeName() == "."+name {
			return true
		}
	}
	return false
}
