// Package charts holds the Helm charts, so that the hub installs agents with the very chart that
// users install by hand.
//
// Its invariant: what a program renders from FS is what `helm install` renders from this directory.
package charts

import "embed"

// FS holds one directory per chart: fleet (the hub), fleet-agent and member-agent (the agent, by
// either door), and fleet-crd.
//
//go:embed all:fleet all:fleet-agent all:fleet-crd all:member-agent
var FS embed.FS
