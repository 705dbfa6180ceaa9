package placement

import (
	"k8s.io/apimachinery/pkg/types"
)

// versionMemory is the data about the versions of one placement.
type versionMemory struct {
	// of is the UID of the placement. Its versions are known if known is set.
	of    types.UID
	known bool
	all   []version
	// loaded is the last read version, packed its content.
	loaded version
	packed []byte
	// tooLarge is the hash of a selection too large to store; tooLargeMessage is the reason.
	tooLarge, tooLargeMessage string
}

// versions returns the versions of a placement, and reports whether they are known.
func (m *memory) versions(key types.NamespacedName, of types.UID) (all []version, known bool) {
	m.update(key, func(p *placementMemory) { all, known = p.versions.all, p.versions.known && p.versions.of == of })
	return all, known
}

func (m *memory) setVersions(key types.NamespacedName, of types.UID, all []version) {
	m.update(key, func(p *placementMemory) { p.versions.of, p.versions.known, p.versions.all = of, true, all })
}

// forgetVersions makes the hub read the versions of a placement from the API server again.
func (m *memory) forgetVersions(key types.NamespacedName) {
	m.update(key, func(p *placementMemory) { p.versions = versionMemory{} })
}

// packed returns the content of a version, nil if it was not read.
func (m *memory) packed(key types.NamespacedName, v version) (packed []byte) {
	m.update(key, func(p *placementMemory) {
		if p.versions.loaded == v {
			packed = p.versions.packed
		}
	})
	return packed
}

func (m *memory) setPacked(key types.NamespacedName, v version, packed []byte) {
	m.update(key, func(p *placementMemory) { p.versions.loaded, p.versions.packed = v, packed })
}

// tooLarge returns the reason why the selection cannot be stored as a version; empty if it can.
func (m *memory) tooLarge(key types.NamespacedName, hash string) (why string) {
	m.update(key, func(p *placementMemory) {
		if p.versions.tooLarge == hash {
			why = p.versions.tooLargeMessage
		}
	})
	return why
}

func (m *memory) setTooLarge(key types.NamespacedName, hash, why string) {
	m.update(key, func(p *placementMemory) { p.versions.tooLarge, p.versions.tooLargeMessage = hash, why })
}
