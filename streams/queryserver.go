package streams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// QueryAddr is where this process answers queries: the URL under which others reach
// the handler that Running.Queries returns, http://host:port/path. All processes of
// the application learn it; a view, and the handler itself, ask whoever has the key.
func QueryAddr(url string) RunOpt {
	return func(o *runtime.Options) { o.Addr = strings.TrimSuffix(url, "/") }
}

// Queries answers questions about the application's stores over HTTP:
//
//	GET /                             the stores
//	GET /<store>?key=k                a row, 404 if there is none
//	GET /<store>?from=a&to=b&limit=n  rows, one JSON object a line, by key
//	GET /<store>?stale=n              with any of them: a copy that lacks up to n records may answer
//
// Keys are given as text where they are strings, numbers or booleans, else as JSON.
// Rows of windows have their start and end beside the key, and are asked for by range
// only. A request that another process can answer is passed on to it; see QueryAddr.
// Under a path of its own mount it with http.StripPrefix.
//
// There is no access control: mount it where whoever reaches it may read everything.
func (r *Running) Queries() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", r.serveAsk)
	mux.HandleFunc("GET /{$}", r.serveStores)
	mux.HandleFunc("GET /{store}", r.serveRows)
	return mux
}

// maxAsk is how long a question from another process may be.
const maxAsk = 1 << 20

// serveAsk answers another process, from what is here.
func (r *Running) serveAsk(w http.ResponseWriter, req *http.Request) {
	var ask runtime.Ask
	if err := json.NewDecoder(io.LimitReader(req.Body, maxAsk)).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), askTime)
	defer cancel()
	a, err := r.job.Local(ctx, ask)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	writeJSON(w, a)
}

var errBadKey = errors.New("streams: not a key of this store")

// statusOf says what an error means to a client.
func statusOf(err error) int {
	switch {
	case errors.Is(err, runtime.ErrNoStore), errors.Is(err, ErrNoView):
		return http.StatusNotFound
	case errors.Is(err, errBadKey):
		return http.StatusBadRequest
	case errors.Is(err, ErrNotHere), errors.Is(err, ErrEnded):
		return http.StatusMisdirectedRequest
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func writeJSON(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(raw, '\n')) // the client has gone if it fails
}
