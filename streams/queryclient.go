package streams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// askTime bounds what is done for a request.
const askTime = 10 * time.Second

// askClient asks other processes. It follows no redirects: an address is where the
// process said it is.
var askClient = &http.Client{
	Timeout:       askTime,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// askOverHTTP asks another process for what it has.
func askOverHTTP(ctx context.Context, addr string, ask runtime.Ask) (a runtime.Answer, err error) {
	raw, err := json.Marshal(ask)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+"/", bytes.NewReader(raw))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := askClient.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // as far as it is readable
		return a, fmt.Errorf("%s answers %s: %s", addr, resp.Status, bytes.TrimSpace(text))
	}
	return a, json.NewDecoder(resp.Body).Decode(&a)
}
