package kube

import (
	"hash/fnv"
	"math"
)

// Jitter returns a constant number between 0 and 1 for the name or UID of an object, to spread
// repetitions of simultaneous work.
func Jitter[T ~string](object T) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(object)) // never fails
	return float64(h.Sum32()) / math.MaxUint32
}
