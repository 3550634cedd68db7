package session

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// end asks the coordinator to commit or abort. The same question may be put again, as
// it has the transaction's epoch: version 2 takes a new one with the answer.
func (s *sender) end(ctx context.Context, commit bool) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = *s.txnID, s.id, s.epoch, commit
	var resp *kmsg.EndTxnResponse
	err := s.cluster.retry(ctx, func() (err error) {
		if resp, err = req.RequestWith(ctx, s.cluster.client); err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err == nil && resp.Version >= 5 {
		s.renumber(resp.ProducerID, resp.ProducerEpoch)
	}
	return err
}
