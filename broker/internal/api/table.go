package api

// The table is filled in init because handlers (ApiVersions) read it.
func init() {
	routes = []route{
		{key: keyProduce, min: 3, max: 13, raw: serveProduce},
		{key: keyFetch, min: 4, max: 18, raw: serveFetch},
		{key: 2, min: 1, max: 11, handle: handleListOffsets},
		{key: 3, min: 0, max: 13, handle: handleMetadata},
		{key: 8, min: 2, max: 10, handle: handleOffsetCommit},
		{key: 9, min: 1, max: 10, handle: handleOffsetFetch},
		{key: 10, min: 0, max: 6, handle: handleFindCoordinator},
		{key: 11, min: 0, max: 9, handle: handleJoinGroup},
		{key: 12, min: 0, max: 4, handle: handleHeartbeat},
		{key: 13, min: 0, max: 5, handle: handleLeaveGroup},
		{key: 14, min: 0, max: 5, handle: handleSyncGroup},
		{key: 15, min: 0, max: 6, handle: handleDescribeGroups},
		{key: 16, min: 0, max: 5, handle: handleListGroups},
		{key: keyAPIVersions, min: 0, max: 5, handle: handleAPIVersions},
		{key: 19, min: 2, max: 7, handle: handleCreateTopics},
		{key: 20, min: 1, max: 6, handle: handleDeleteTopics},
		{key: 21, min: 0, max: 2, handle: handleDeleteRecords},
		{key: 22, min: 0, max: 6, handle: handleInitProducerID, request: newInitProducerID},
		{key: 23, min: 2, max: 4, handle: handleOffsetForLeaderEpoch},
		{key: 24, min: 0, max: 5, handle: handleAddPartitionsToTxn},
		{key: 25, min: 0, max: 4, handle: handleAddOffsetsToTxn},
		{key: 26, min: 0, max: 5, handle: handleEndTxn},
		{key: 27, min: 1, max: 2, handle: handleWriteTxnMarkers},
		{key: 28, min: 0, max: 6, handle: handleTxnOffsetCommit},
		{key: 32, min: 1, max: 4, handle: handleDescribeConfigs},
		{key: 33, min: 0, max: 2, handle: handleAlterConfigs},
		{key: 42, min: 0, max: 3, handle: handleDeleteGroups},
		{key: 44, min: 0, max: 1, handle: handleIncrementalAlterConfigs},
		{key: 47, min: 0, max: 0, handle: handleOffsetDelete},
		{key: 57, min: 0, max: 2, handle: handleUpdateFeatures},
		{key: 60, min: 0, max: 2, handle: handleDescribeCluster},
		{key: 61, min: 0, max: 0, handle: handleDescribeProducers},
		{key: 65, min: 0, max: 0, handle: handleDescribeTransactions},
		{key: 66, min: 0, max: 2, handle: handleListTransactions},
	}
	for i := range routes {
		byKey[routes[i].key] = &routes[i]
	}
}
