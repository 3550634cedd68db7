package sim

import "strconv"

// segmentBytes is so small that logs have many segments; the broker's own limits allow no less for what clients send.
const segmentBytes = 3000

// smallSegments keeps everything, in many segments.
func smallSegments() map[string]string {
	return map[string]string{"internal.segment.bytes": strconv.Itoa(segmentBytes), "retention.ms": "-1", "index.interval.bytes": "300"}
}
