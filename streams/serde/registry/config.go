package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says where a registry is and how to talk to it. It prints without its
// secrets.
type Config struct {
	// URLs are http or https addresses of one registry, tried in this order. A user
	// and password in the first of them count as User and Password.
	URLs []string
	// User and Password are for basic authentication, Token for a bearer token;
	// one of both, or none.
	User, Password, Token string
	// TLS is for https; nil takes the system's certificates.
	TLS *tls.Config
	// Context is the registry's context, a name space of subjects; empty for the
	// default one.
	Context string
	// Timeout is how long a look-up may take, with all its tries: 5 s if zero, at
	// least 1 ms and at most a minute. It should fit into the transaction timeout
	// of the job.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second
	minTimeout     = time.Millisecond
	maxTimeout     = time.Minute
)

// Validate says what is wrong with the fields, all at once.
func (c Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("registry: "+format, args...)) }
	if len(c.URLs) == 0 {
		fail("URLs is empty, at least one is needed")
	}
	for i, raw := range c.URLs {
		u, err := url.Parse(raw)
		switch {
		case err != nil:
			// The parser's error repeats the text, which may hold a password.
			fail("URLs[%d] is not a URL", i)
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			fail("URLs[%d] is %s, must begin with http:// or https:// and a host", i, u.Redacted())
		case u.User != nil && i > 0:
			fail("URLs[%d] has a user: only the first may", i)
		case u.User != nil && c.User != "":
			fail("the user is given twice, in User and in URLs[0]")
		}
	}
	if c.User == "" && c.Password != "" {
		fail("Password is set without User")
	}
	if c.User != "" && c.Token != "" {
		fail("User and Token are both set")
	}
	if c.Timeout != 0 && (c.Timeout < minTimeout || c.Timeout > maxTimeout) {
		fail("Timeout is %v, must be between %v and %v", c.Timeout, minTimeout, maxTimeout)
	}
	return errors.Join(errs...)
}

// String leaves out password and token.
func (c Config) String() string {
	var parts []string
	for _, raw := range c.URLs {
		parts = append(parts, bareURL(raw))
	}
	s := "registry " + strings.Join(parts, ",")
	switch {
	case c.User != "":
		s += " as " + c.User
	case c.Token != "":
		s += " with a token"
	}
	return s
}

// GoString is String: %#v must not tell secrets either.
func (c Config) GoString() string { return c.String() }

// bareURL is a URL without user and password.
func bareURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(no URL)"
	}
	u.User = nil
	return u.String()
}

// settled is the configuration with its defaults, and the user taken out of the
// URL.
func (c Config) settled() Config {
	urls := make([]string, len(c.URLs))
	for i, raw := range c.URLs {
		urls[i] = strings.TrimRight(bareURL(raw), "/")
	}
	if u, err := url.Parse(c.URLs[0]); err == nil && u.User != nil {
		c.User = u.User.Username()
		c.Password, _ = u.User.Password()
	}
	c.URLs = urls
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

// httpClient has no timeout of its own: each request carries its deadline.
func (c Config) httpClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS.Clone()
	}
	return &http.Client{Transport: t}
}
