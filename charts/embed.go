// Package charts holds the Helm charts, so that the hub installs agents with the same chart as
// users.
//
// Its invariant: a program renders the same manifests from FS as `helm install` from this
// directory.
package charts

import "embed"

// FS holds one directory per chart: fleet (the hub), fleet-agent (the agent of a Cluster),
// member-agent (the agent of a MemberCluster), and fleet-crd.
//
//go:embed all:fleet all:fleet-agent all:fleet-crd all:member-agent
var FS embed.FS
