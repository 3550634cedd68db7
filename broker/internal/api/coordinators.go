package api

import (
	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// coordinators are the two machines that handlers of groups and transactions
// talk to. Their fields are promoted to Server.
type coordinators struct {
	Groups *coord.Runtime[*group.Machine]
	Txns   *coord.Transactions
}
