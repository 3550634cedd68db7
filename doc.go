// Package millrace is the root of the module. It holds no code: the product is in its folders, which stand on
// four floors (see ARCHITECTURE.md), and floors_test.go beside this file keeps them apart.
//
//	floor 3   cmd  examples  benchmarks
//	floor 2   broker | streams | connectors
//	floor 1   txn
//	floor 0   core
package millrace
