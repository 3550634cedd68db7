package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster: versions 0 to 2.
//
//   - MISMATCHED_ENDPOINT_TYPE: the client wants controllers (endpoint type 2)
//   - UNSUPPORTED_ENDPOINT_TYPE: neither brokers nor controllers
func handleDescribeCluster(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	if c.Version >= 1 && req.EndpointType != endpointBroker {
		resp.ControllerID, resp.EndpointType = -1, endpointBroker
		switch req.EndpointType {
		case endpointController:
			resp.ErrorCode = kerr.MismatchedEndpointType.Code
			resp.ErrorMessage = kmsg.StringPtr("The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
		default:
			resp.ErrorCode = kerr.UnsupportedEndpointType.Code
			resp.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Unsupported endpoint type %d", req.EndpointType))
		}
		reply(resp)
		return
	}
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID = s.Config.NodeID
	b.Host, b.Port = s.Advertised(c.Listener, c.Local)
	resp.Brokers = append(resp.Brokers, b)
	resp.EndpointType = endpointBroker
	resp.ClusterID, resp.ControllerID = s.Meta.Image().ClusterID, s.Config.NodeID
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = s.allowedOperations(c, kmsg.ACLResourceTypeCluster, clusterResource, clusterOperations)
	}
	reply(resp)
}

// The endpoint types of DescribeCluster.
const (
	endpointBroker     = 1
	endpointController = 2
)
