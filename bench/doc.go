// Package bench measures the budgets of the project on a real control plane, with the hub and the
// agent as real processes on the same machine. Every figure stands beside the raw-write ceiling of
// the same API server in the same run. It asserts nothing; run it with make bench, and see
// docs/benchmarks.md for the last figures.
package bench
