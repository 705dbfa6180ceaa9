// Command fleet simulates fleets of members against a real hub process on a real control plane, and
// measures the cost of each member. It runs thousands of real Muster agents in this process: only
// the API server of each member and its deployer are simulated. Upstream agents are simulated on
// the wire.
//
// Its invariant: it asserts nothing and hides nothing. kube-controller-manager has its default
// limits, the hub the rights of its chart. Each figure comes with the raw-write ceiling of its run.
package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/testkube"
)

var begun = time.Now()

func main() {
	options, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(testkube.Outside("fleet", func(t testing.TB) {
		var results []*result
		for _, size := range options.sizes {
			results = append(results, simulate(t, options, size))
			if err := write(options, results); err != nil {
				t.Fatal(err)
			}
		}
	}))
}
