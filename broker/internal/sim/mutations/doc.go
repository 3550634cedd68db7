// Package mutations proves that the simulation finds faults: each entry of [All] is a fault that somebody could make, as an edit of
// the source, and each must be caught within a bounded number of seeds. The edits are laid over the source for one build of the
// simulation (go build -overlay), so nothing of them is in the program that ships. One that survives is a hole in the simulation.
//
// The table is checked against the source with every run of the tests; the builds are a long form: make sim-mutations.
package mutations
