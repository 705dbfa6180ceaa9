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
	// objects are the identities of what the manifests are of.
	objects []string
}

// home says in which part the Work of each object is that has one, by the object's identity.
type home map[string]int

// home says in which part each object is.
func (d desiredWorks) home() home {
	at := home{}
	for i, p := range d.parts {
		for _, id := range p.objects {
			at[id] = i
		}
	}
	return at
}

// leaves says whether parts have an object that is not where it was.
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

// fullError says that the objects of a Work do not fit into it any more.
type fullError struct{ part, bytes int }

func (e *fullError) Error() string {
	return fmt.Sprintf("Work number %d of a member is full: its objects have grown to %d KiB, and %d fit; make them smaller, "+
		"select some of them by another placement, or upgrade the agents that cannot hand an object over to another Work",
		e.part, e.bytes>>10, maxGrown>>10)
}

// packing is how objects are being divided into parts.
type packing struct {
	texts [][]byte
	ids   []string
	// where is the part of each object, -1 if it has none yet.
	where []int
	// bytes and count are what each part has.
	bytes, count []int
	limit        int
}

// pack divides objects into parts. An object stays in the part where it is; others go to the
// first part with room. Objects that have grown leave a part which is too large for another
// one behind it, if agents hand objects over; others delete what leaves a Work, so that the
// part is full for them. There is always one part, so that a member keeps the placement when
// nothing is selected any more.
func pack(objects []*unstructured.Unstructured, at home, limit int, handsOver bool) ([]part, error) {
	p := packing{bytes: []int{0}, count: []int{0}, limit: limit}
	for i, o := range objects {
		id := identity(o.GetKind(), o.GetAPIVersion(), o.GetNamespace(), o.GetName())
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", id, err)
		}
		p.texts, p.ids, p.where = append(p.texts, text), append(p.ids, id), append(p.where, -1)
		if n, placed := at[id]; placed {
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

// roomFor is the first part from a number on that has room for an object.
func (p *packing) roomFor(i, from int) int {
	n := from
	for n < len(p.bytes) && p.count[n] > 0 && (p.bytes[n]+len(p.texts[i]) > p.limit || p.count[n] >= maxObjects) {
		n++
	}
	return n
}

// relieve moves objects out of a part, the largest first, until it is below the limit.
// They go behind it, so that whoever sees an object in two Works knows that it is on its
// way to the later one.
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
