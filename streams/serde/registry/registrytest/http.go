package registrytest

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

const contentType = "application/vnd.schemaregistry.v1+json"

func (r *Registry) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(*http.Request) (any, error){
		"GET /schemas/ids/{id}":                      r.schemaByID,
		"POST /subjects/{subject}/versions":          r.register,
		"POST /subjects/{subject}":                   r.lookUp,
		"GET /subjects/{subject}/versions/{version}": r.version,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			r.mu.Lock()
			v, err := f(req)
			r.mu.Unlock()
			answer(w, v, err)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if status := r.guard(req); status != 0 {
			answer(w, nil, &refusal{status, status, http.StatusText(status)})
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// guard notes the request and answers for it if a test wants that, or if the user
// is not the right one.
func (r *Registry) guard(req *http.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	if r.fail != nil {
		if status := r.fail(req); status != 0 {
			return status
		}
	}
	user, password, _ := req.BasicAuth()
	if user != r.user || password != r.password {
		return http.StatusUnauthorized
	}
	return 0
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", contentType)
	var no *refusal
	if errors.As(err, &no) {
		w.WriteHeader(no.status)
		v = map[string]any{"error_code": no.code, "message": no.message}
	}
	// The client has gone: nobody is left to tell.
	_ = json.MarshalWrite(w, v)
}

// wanted is the schema in a request.
func wanted(req *http.Request) (s schema, err error) {
	if err := json.UnmarshalRead(req.Body, &s); err != nil {
		return s, &refusal{http.StatusUnprocessableEntity, 42201, fmt.Sprintf("Invalid schema: %v", err)}
	}
	return s, nil
}

func (r *Registry) schemaByID(req *http.Request) (any, error) {
	id, err := strconv.Atoi(req.PathValue("id"))
	if err != nil || id < 1 || id > len(r.byID) {
		return nil, &refusal{http.StatusNotFound, 40403, "Schema " + req.PathValue("id") + " not found"}
	}
	return withoutAvro(r.byID[id-1]), nil
}

// withoutAvro: the kind AVRO is not said in answers.
func withoutAvro(s schema) schema {
	if s.kind() == "AVRO" {
		s.Kind = ""
	}
	return s
}

func (r *Registry) register(req *http.Request) (any, error) {
	s, err := wanted(req)
	if err == nil {
		err = r.admit(req.PathValue("subject"), s)
	}
	if err != nil {
		return nil, err
	}
	return map[string]int{"id": r.add(req.PathValue("subject"), s)}, nil
}

// subjectSchema is a schema with its place.
type subjectSchema struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
	ID      int    `json:"id"`
	schema  `json:",inline"`
}

func (r *Registry) lookUp(req *http.Request) (any, error) {
	subject := req.PathValue("subject")
	s, err := wanted(req)
	if err != nil {
		return nil, err
	}
	versions, ok := r.subjects[subject]
	if !ok {
		return nil, &refusal{http.StatusNotFound, 40401, fmt.Sprintf("Subject '%s' not found.", subject)}
	}
	for i, id := range versions {
		if r.byID[id-1].equal(s) {
			return subjectSchema{subject, i + 1, id, withoutAvro(s)}, nil
		}
	}
	return nil, &refusal{http.StatusNotFound, 40403, "Schema not found"}
}

func (r *Registry) version(req *http.Request) (any, error) {
	subject := req.PathValue("subject")
	versions, ok := r.subjects[subject]
	if !ok {
		return nil, &refusal{http.StatusNotFound, 40401, fmt.Sprintf("Subject '%s' not found.", subject)}
	}
	n := len(versions)
	if v := req.PathValue("version"); v != "latest" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1 || n > len(versions) {
			return nil, &refusal{http.StatusNotFound, 40402, fmt.Sprintf("Version %s not found.", v)}
		}
	}
	id := versions[n-1]
	return subjectSchema{subject, n, id, withoutAvro(r.byID[id-1])}, nil
}
