package protobuf

import (
	"errors"
	"strings"
)

// outlineOf finds the messages of a schema's text without understanding the rest:
// it follows braces, and takes "message Name {" for one where a message may stand.
func outlineOf(text string) (*message, error) {
	root := new(message)
	scopes := []*message{root} // nil: inside of braces that no message can be in
	prefix := ""
	var last [2]string // the tokens before this one
	for s := (scanner{rest: text}); ; {
		token, err := s.next()
		if err != nil {
			return nil, err
		}
		at := scopes[len(scopes)-1]
		switch {
		case token == "" && len(scopes) > 1:
			return nil, errors.New("protobuf: the schema's text ends inside of braces")
		case token == "":
			return root, nil
		case token == "{":
			var child *message
			if at != nil && last[0] == "message" {
				child = &message{name: joined(prefix, last[1])}
				if at != root {
					child.name = at.name + "." + last[1]
				}
				at.nested = append(at.nested, child)
			}
			scopes = append(scopes, child)
		case token == "}" && len(scopes) == 1:
			return nil, errors.New("protobuf: the schema's text closes more braces than it opens")
		case token == "}":
			scopes = scopes[:len(scopes)-1]
		case last[1] == "package" && at == root && prefix == "":
			prefix = token
		}
		last[0], last[1] = last[1], token
	}
}

// scanner splits a text into names with their dots, and single other signs. What
// is in quotes is one sign.
type scanner struct{ rest string }

func (s *scanner) next() (string, error) {
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\r\n\f\v\ufeff")
		switch {
		case s.rest == "":
			return "", nil
		case strings.HasPrefix(s.rest, "//"):
			_, s.rest, _ = strings.Cut(s.rest, "\n")
		case strings.HasPrefix(s.rest, "/*"):
			_, after, closed := strings.Cut(s.rest[2:], "*/")
			if !closed {
				return "", errors.New("protobuf: the schema's text ends inside of a comment")
			}
			s.rest = after
		case s.rest[0] == '"' || s.rest[0] == '\'':
			return s.quoted()
		default:
			n := strings.IndexFunc(s.rest, func(r rune) bool { return !inName(r) })
			if n < 0 {
				n = len(s.rest)
			}
			n = max(n, 1)
			token := s.rest[:n]
			s.rest = s.rest[n:]
			return token, nil
		}
	}
}

func (s *scanner) quoted() (string, error) {
	quote := s.rest[0]
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case quote:
			s.rest = s.rest[i+1:]
			return string(quote), nil
		}
	}
	return "", errors.New("protobuf: the schema's text ends inside of quotes")
}

func inName(r rune) bool {
	return r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
