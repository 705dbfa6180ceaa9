// Package rig has what benchmarks and simulated fleets measure with, and what plays agents of
// others on the wire.
//
// Its invariant: it measures and plays, and decides nothing; whatever fails is returned.
package rig
