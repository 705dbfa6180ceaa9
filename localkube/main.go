// Command localkube runs a real Kubernetes (etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and a host node) from one binary,
// without root, containers or downloads. Called as kubectl it is kubectl.
package main

import (
	"os"

	"github.com/muster-fleet/muster/localkube/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args))
}
