package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/millrace/millrace/streams/serde"
)

// Errors to tell apart with errors.Is. What says nothing about a record, a
// registry that is down, slow, or refuses the user, wraps serde.ErrUnavailable.
var (
	// ErrIncompatible: the registry refuses to add a schema to a subject, by the
	// subject's rule of compatibility.
	ErrIncompatible = errors.New("schema is incompatible with the subject's")
	// ErrNotRegistered: the subject, or the schema under it, is not there.
	ErrNotRegistered = errors.New("schema is not registered")
	// ErrUnknownSchema: a record carries a number that the registry does not know.
	ErrUnknownSchema = errors.New("schema number is not known to the registry")
	// ErrNotFramed: a record does not begin as one with a schema does.
	ErrNotFramed = errors.New("record has no schema number in front")
)

// What the registry answers, by its own codes.
const (
	codeSubjectNotFound = 40401
	codeVersionNotFound = 40402
	codeSchemaNotFound  = 40403
	codeSubjectDeleted  = 40404
	codeSchemaDeleted   = 40406
)

// sort turns an error of the client into one of ours, and says whether trying
// again may help.
func classify(err error) (ours error, again bool) {
	var r *sr.ResponseError
	if !errors.As(err, &r) {
		if errors.Is(err, context.Canceled) {
			return err, false
		}
		return fmt.Errorf("%w: %w", serde.ErrUnavailable, err), true
	}
	switch {
	case r.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrIncompatible, reason(r)), false
	case r.ErrorCode == codeSubjectNotFound, r.ErrorCode == codeVersionNotFound, r.ErrorCode == codeSchemaNotFound,
		r.ErrorCode == codeSubjectDeleted, r.ErrorCode == codeSchemaDeleted:
		return fmt.Errorf("%w: %s", ErrNotRegistered, reason(r)), false
	case r.StatusCode == http.StatusUnprocessableEntity, r.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("the registry refuses the schema: %s", reason(r)), false
	case r.StatusCode == http.StatusTooManyRequests, r.StatusCode >= 500:
		return fmt.Errorf("%w: status %d: %s", serde.ErrUnavailable, r.StatusCode, reason(r)), true
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: the registry refuses the user: status %d: %s", serde.ErrUnavailable, r.StatusCode, reason(r)), false
	}
	return fmt.Errorf("%w: unexpected answer, status %d: %s", serde.ErrUnavailable, r.StatusCode, reason(r)), false
}

// maxReason bounds what is repeated of an answer: it may be the page of a proxy.
const maxReason = 500

func reason(r *sr.ResponseError) string {
	s := r.Message
	if s == "" {
		s = string(r.Raw)
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}
