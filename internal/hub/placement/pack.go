package placement

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// part is the content of one Work.
type part struct {
	manifests []placement.Manifest
	digest    string
	// objects are the identities of the objects in the manifests.
	objects []string
}

// home maps the identity of each placed object to the part with its Work.
type home map[string]int

// home returns the part of each object.
func (d desiredWorks) home() home {
	at := home{}
	for i, p := range d.parts {
		for _, id := range p.objects {
			at[id] = i
		}
	}
	return at
}

// leaves reports whether parts have an object in a new place.
func (at home) leaves(parts []part) bool {
	for i, p := range parts {
		for _, id := range p.objects {
			if was, placed := at[id]; placed && was != i {
				return true
			}
		}
	}
	return false
}

// fullError reports that the objects of a Work no longer fit into it.
type fullError struct{ part, bytes int }

func (e *fullError) Error() string {
	return fmt.Sprintf("Work number %d of a member is full: its objects have grown to %d KiB, and %d fit; make them smaller, "+
		"select some of them by another placement, or upgrade the agents that cannot hand an object over to another Work",
		e.part, e.bytes>>10, maxGrown>>10)
}

// packing is the state of dividing objects into parts.
type packing struct {
	texts [][]byte
	ids   []string
	// where is the part of each object, -1 if it has none yet.
	where []int
	// bytes and count are the contents of each part.
	bytes, count []int
	limit        int
}

// pack divides objects into parts. An object stays in its part; new ones go to the first part with
// room. If agents hand objects over, grown objects leave an oversized part for a later one.
// Otherwise agents delete objects that leave a Work, and the part counts as full. There is always
// one part: a member keeps the placement even after an empty selection.
func pack(objects []*unstructured.Unstructured, present home, limit int, handsOver bool) ([]part, error) {
	p := packing{bytes: []int{0}, count: []int{0}, limit: limit}
	for i, o := range objects {
		id := identity(o.GetKind(), o.GetAPIVersion(), o.GetNamespace(), o.GetName())
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", id, err)
		}
		p.texts, p.ids, p.where = append(p.texts, text), append(p.ids, id), append(p.where, -1)
		if n, placed := present[id]; placed {
			p.put(i, n)
		}
	}
	for n := 0; n < len(p.bytes); n++ {
		if p.bytes[n] <= max(maxGrown, limit) || p.count[n] <= 1 {
			continue
		}
		if !handsOver {
			return nil, &fullError{n, p.bytes[n]}
		}
		p.relieve(n)
	}
	for i := range objects {
		if p.where[i] < 0 {
			p.put(i, p.roomFor(i, 0))
		}
	}
	return p.parts(), nil
}

func (p *packing) put(i, n int) {
	for len(p.bytes) <= n {
		p.bytes, p.count = append(p.bytes, 0), append(p.count, 0)
	}
	p.where[i] = n
	p.bytes[n] += len(p.texts[i])
	p.count[n]++
}

// roomFor returns the first part from a number on with room for an object.
func (p *packing) roomFor(i, from int) int {
	n := from
	for n < len(p.bytes) && p.count[n] > 0 && (p.bytes[n]+len(p.texts[i]) > p.limit || p.count[n] >= maxObjects) {
		n++
	}
	return n
}

// relieve moves objects out of a part, the largest first, until it is below the limit. They go to
// later parts. An object in two Works is therefore on its way to the later one.
func (p *packing) relieve(n int) {
	var inside []int
	for i, where := range p.where {
		if where == n {
			inside = append(inside, i)
		}
	}
	slices.SortStableFunc(inside, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(p.texts[b]), len(p.texts[a])), cmp.Compare(p.ids[a], p.ids[b]))
	})
	for _, i := range inside {
		if p.bytes[n] <= p.limit || p.count[n] == 1 {
			return
		}
		p.bytes[n] -= len(p.texts[i])
		p.count[n]--
		p.put(i, p.roomFor(i, n+1))
	}
}

func (p *packing) parts() []part {
	parts := make([]part, len(p.bytes))
	for i, n := range p.where {
		parts[n].objects = append(parts[n].objects, p.ids[i])
		parts[n].manifests = append(parts[n].manifests, placement.Manifest{RawExtension: runtime.RawExtension{Raw: p.texts[i]}})
	}
	for i := range parts {
		parts[i].digest = digest(parts[i].manifests)
	}
	return parts
}
