package api

// coordinators are the two machines that handlers of groups and transactions
// talk to. Their fields are promoted to Server.
type coordinators struct{}
