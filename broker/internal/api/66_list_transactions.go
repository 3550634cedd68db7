package api

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/coordinator"
)

// ListTransactions: versions 0 to 2; 1 adds the age of the transaction to the
// filters (KIP-994), 2 a regular expression that the whole id must match (KIP-1152).
//
// Ids that the caller may not DESCRIBE are left out. An id without a transaction
// counts as older than any, as in Kafka. Names of states that do not exist are
// given back; if no other was asked for, nothing is listed.
//
//   - INVALID_REGULAR_EXPRESSION
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleListTransactions(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.ListTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	f := coordinator.ListFilter{ProducerIDs: req.ProducerIDFilters, OlderThanMs: req.DurationFilterMillis}
	for _, name := range req.StateFilters {
		if state, ok := coordinator.StateNamed(name); ok {
			f.States = append(f.States, state)
		} else {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	if len(resp.UnknownStateFilters) > 0 && len(f.States) == 0 {
		f.States = []coordinator.State{coordinator.Dead} // in which none is listed
	}
	if p := req.TransactionalIDPattern; p != nil && *p != "" {
		whole, err := regexp.Compile(`\A(?:` + *p + `)\z`)
		if err != nil {
			resp.ErrorCode = kerr.InvalidRegularExpression.Code
			reply(resp)
			return
		}
		f.ID = whole.MatchString
	}
	s.Txns.List(f, func(all []coordinator.Described, code int16) {
		resp.ErrorCode = code
		for _, d := range all {
			if !s.mayDescribeTxn(c, d.ID) {
				continue
			}
			row := kmsg.NewListTransactionsResponseTransactionState()
			row.TransactionalID, row.ProducerID, row.TransactionState = d.ID, d.ProducerID, d.State.String()
			resp.TransactionStates = append(resp.TransactionStates, row)
		}
		reply(resp)
	})
}
