package kube

import (
	"hash/fnv"
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Jitter is a number between 0 and 1 that is always the same for an object, by which what began at once is not repeated at once.
func Jitter(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return float64(h.Sum32()) / math.MaxUint32
}
