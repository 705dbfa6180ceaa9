package kube

import (
	"hash/fnv"
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Jitter returns a constant number between 0 and 1 for an object, to spread repetitions of
// simultaneous work.
func Jitter(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return float64(h.Sum32()) / math.MaxUint32
}
