package registrytest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Registry is the server. All methods are for any goroutine.
type Registry struct {
	// URL is where it listens.
	URL string

	server *httptest.Server

	mu       sync.Mutex
	byID     []schema         // number n at n-1
	subjects map[string][]int // numbers, in the order of their versions
	levels   map[string]string
	refused  map[string]string // by subject
	fail     func(*http.Request) int
	requests []string
	user     string
	password string
}

// Start starts a registry that ends with the test. Its level of compatibility is
// BACKWARD.
func Start(t testing.TB) *Registry {
	r := &Registry{subjects: map[string][]int{}, levels: map[string]string{}, refused: map[string]string{}}
	r.server = httptest.NewServer(r.handler())
	r.URL = r.server.URL
	t.Cleanup(r.server.Close)
	return r
}

// Stop ends the server: connections to it are refused from now on.
func (r *Registry) Stop() { r.server.Close() }

// Protect asks every request for a user and password.
func (r *Registry) Protect(user, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user, r.password = user, password
}

// Fail makes f decide before each request: a status other than 0 is the answer.
// nil ends it.
func (r *Registry) Fail(f func(*http.Request) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

// Refuse makes new schemas of a subject incompatible, for this reason; an empty one
// ends it.
func (r *Registry) Refuse(subject, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[subject] = reason
}

// Level sets a subject's level of compatibility: NONE, BACKWARD, FORWARD or FULL,
// each also with _TRANSITIVE.
func (r *Registry) Level(subject, level string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.levels[subject] = level
}

// Add puts a schema under a subject, whatever is there, and returns its number.
func (r *Registry) Add(subject, kind, text string, refs ...Reference) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(subject, schema{Kind: kind, Text: text, References: refs})
}

// Requests are those so far, as "GET /schemas/ids/1".
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Subject are the texts of a subject's schemas, by version.
func (r *Registry) Subject(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, id := range r.subjects[name] {
		texts = append(texts, r.byID[id-1].Text)
	}
	return texts
}

// add is under mu.
func (r *Registry) add(subject string, s schema) int {
	id := 1 + slices.IndexFunc(r.byID, s.equal)
	if id == 0 {
		r.byID = append(r.byID, s)
		id = len(r.byID)
	}
	if !slices.Contains(r.subjects[subject], id) {
		r.subjects[subject] = append(r.subjects[subject], id)
	}
	return id
}

// admit says why a subject may not have a schema; under mu.
func (r *Registry) admit(subject string, s schema) error {
	for _, ref := range s.References {
		if ref.Version < 1 || ref.Version > len(r.subjects[ref.Subject]) {
			return &refusal{http.StatusUnprocessableEntity, 42201, fmt.Sprintf("Invalid schema: reference %s, subject %s version %d", ref.Name, ref.Subject, ref.Version)}
		}
	}
	versions := r.subjects[subject]
	for _, id := range versions {
		if r.byID[id-1].equal(s) {
			return nil // it is there
		}
	}
	if reason := r.refused[subject]; reason != "" {
		return incompatible(subject, reason)
	}
	if err := parses(s); err != nil {
		return err
	}
	for i, id := range slices.Backward(versions) {
		older := r.byID[id-1]
		if reason := clash(r.levels[subject], older, s); reason != "" {
			return incompatible(subject, reason)
		}
		if i == len(versions)-1 && !transitive(r.levels[subject]) {
			break
		}
	}
	return nil
}

func incompatible(subject, reason string) error {
	return &refusal{http.StatusConflict, http.StatusConflict,
		fmt.Sprintf("Schema being registered is incompatible with an earlier schema for subject %q, details: [%s]", subject, reason)}
}
