// Package rig measures benchmarks and simulated fleets, and simulates other projects' agents on the
// wire.
//
// Its invariant: it measures and simulates, and decides nothing; it returns every failure.
package rig
