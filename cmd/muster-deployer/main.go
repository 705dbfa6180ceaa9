// Command muster-deployer makes the Helm releases of a cluster match its BundleDeployments on the
// hub; muster-agent starts it.
package main

import (
	"os"

	"github.com/muster-fleet/muster/internal/deploy"
)

func main() {
	os.Exit(deploy.Main())
}
