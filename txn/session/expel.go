package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Expel removes the member with an instance id from a group at once: its tasks go to
// others now and not when its session is over. One that is not there is fine.
func (c *Cluster) Expel(ctx context.Context, group, instance string) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	rm := kmsg.NewLeaveGroupRequestMember()
	rm.InstanceID = &instance
	req.Members = append(req.Members, rm)
	err := c.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(resp.ErrorCode)
		for _, m := range resp.Members {
			err = errors.Join(err, kerr.ErrorForCode(m.ErrorCode))
		}
		if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("session: expel %s from group %s: %w", instance, group, err)
	}
	return nil
}
