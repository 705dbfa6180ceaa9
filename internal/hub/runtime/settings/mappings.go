package settings

import "fmt"

// The values of bundleNamespaceMappings.
const (
	MappingsConsent = "consent"
	MappingsOpen    = "open"
)

// upstreamLocal is the default workspace of the hub's own Cluster. Objects in it stay after the
// bootstrap is turned off.
const upstreamLocal = "fleet-local"

// Mappings restricts the namespaces that a BundleNamespaceMapping may open.
type Mappings struct {
	// Open lets a mapping open every selected namespace, as upstream does; else the namespace must
	// consent.
	Open bool
	// Local is the workspace of the hub's own Cluster.
	Local string
	// ToLocal lets mappings open the local workspace, too, if it consents.
	ToLocal bool
}

// IsLocal reports whether a namespace is a workspace of the hub itself.
func (m Mappings) IsLocal(namespace string) bool {
	return namespace == m.Local || namespace == upstreamLocal
}

func (w wire) mappings(local string) (Mappings, error) {
	switch w.BundleNamespaceMappings {
	case "", MappingsConsent, MappingsOpen:
		return Mappings{Open: w.BundleNamespaceMappings == MappingsOpen, Local: local, ToLocal: w.BundleNamespaceMappingsToLocal}, nil
	}
	return Mappings{}, fmt.Errorf("bundleNamespaceMappings %q: want %s or %s", w.BundleNamespaceMappings, MappingsConsent, MappingsOpen)
}
