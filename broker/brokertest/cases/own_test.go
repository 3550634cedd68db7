package cases

import (
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// startOwn starts the embedded broker for one case. Every case has a broker of its own, so that a crash of one does not
// reach another.
func startOwn(t *testing.T) ownBroker {
	return brokertest.StartNode(t, brokertest.CleanEvery(30*time.Millisecond),
		brokertest.Configure(func(c *broker.Config) {
			c.GroupInitialRebalanceDelay, c.GroupMinSessionTimeout = time.Millisecond, 100*time.Millisecond
		}))
}
