package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// currentWorks are a member's Works of one placement. They belong to the cache and must not be
// changed.
type currentWorks struct {
	works    []*placement.Work // in the order of their parts
	deleting bool              // all of them are being deleted
}

// currentWorks returns the Works of a placement by member namespace, and the longest wait until
// the cache shows earlier writes of them.
func (c *Controller) currentWorks(ctx context.Context, key types.NamespacedName) (map[string]*currentWorks, time.Duration, error) {
	var works placement.WorkList
	if err := c.Client.List(ctx, &works, client.MatchingFields{byParent: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing the Works of %s: %w", key, err)
	}
	current, cached := map[string]*currentWorks{}, make([]client.Object, len(works.Items))
	for i := range works.Items {
		work := &works.Items[i]
		cached[i] = work
		if current[work.Namespace] == nil {
			current[work.Namespace] = &currentWorks{deleting: true}
		}
		w := current[work.Namespace]
		w.works = append(w.works, work)
		w.deleting = w.deleting && work.DeletionTimestamp != nil
	}
	for _, w := range current {
		slices.SortFunc(w.works, func(a, b *placement.Work) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
	}
	return current, c.workWrites.Await(key, cached...), nil
}

// home returns the part of each of the member's objects. A moving object is in two Works for a
// moment; it belongs to the later one.
func (w *currentWorks) home(key types.NamespacedName) home {
	parts := home{}
	for _, work := range w.works {
		part, named := partOf(key, work.Name)
		for _, id := range objectsOf(work) {
			if named && part < maxParts && id != "" {
				parts[id] = max(part, parts[id])
			}
		}
	}
	return parts
}

// otherHome is the location of a member's objects if it differs from other members, or if the agent
// does not hand objects over. The key is the same for the same Works.
type otherHome struct {
	home
	key   string
	fixed bool
}

// homes returns the common part of each object on any member. others holds the homes of members
// with an object in another part. These members get parts of their own, because their agents delete
// objects that leave a Work.
func homes(owner types.NamespacedName, current map[string]*currentWorks) (common home, others map[string]otherHome) {
	common, others = home{}, map[string]otherHome{}
	byWorks := map[string]otherHome{} // most members have the same Works
	for _, namespace := range slices.Sorted(maps.Keys(current)) {
		var key strings.Builder
		for _, work := range current[namespace].works {
			fmt.Fprintln(&key, work.Name, digest(work.Spec.Workload.Manifests))
		}
		found, seen := byWorks[key.String()]
		if !seen {
			found = otherHome{home: current[namespace].home(owner), key: key.String()}
			byWorks[found.key] = found
			for id, part := range found.home {
				if _, placed := common[id]; !placed {
					common[id] = part
				}
			}
		}
		for id, part := range found.home {
			if common[id] != part {
				others[namespace] = found
				break
			}
		}
	}
	for _, at := range others {
		for id, part := range common {
			if _, placed := at.home[id]; !placed {
				at.home[id] = part
			}
		}
	}
	return common, others
}

// find returns the Work with a name, or nil.
func (w *currentWorks) find(name string) *placement.Work {
	if w != nil {
		if i := slices.IndexFunc(w.works, func(work *placement.Work) bool { return work.Name == name }); i >= 0 {
			return w.works[i]
		}
	}
	return nil
}

// diff returns the parts with missing or outdated Works, and the Works without a part.
func (w *currentWorks) diff(key types.NamespacedName, desired desiredWorks) (outdated []int, surplus []*placement.Work) {
	have := map[string]*placement.Work{}
	if w != nil {
		for _, work := range w.works {
			have[work.Name] = work
		}
	}
	for i := range desired.parts {
		name := workName(key, i)
		if !desired.matches(i, have[name]) {
			outdated = append(outdated, i)
		}
		delete(have, name)
	}
	for _, work := range have {
		if work.DeletionTimestamp == nil {
			surplus = append(surplus, work)
		}
	}
	return outdated, surplus
}

// matches reports whether a Work matches a part of the desired Works.
func (d desiredWorks) matches(i int, work *placement.Work) bool {
	return work != nil && work.Annotations[placement.AnnotationRemoved] == "" && d.overriddenAs(work) &&
		digest(work.Spec.Workload.Manifests) == d.parts[i].digest &&
		work.Labels[placement.LabelResourceIndex] == d.index &&
		equality.Semantic.DeepEqual(work.Spec.ApplyStrategy, d.applyStrategy) &&
		equality.Semantic.DeepEqual(work.Spec.DeleteStrategy, d.deleteStrategy)
}

// overriddenAs reports whether a Work has exactly the annotations of the overrides for its
// member.
func (d desiredWorks) overriddenAs(work *placement.Work) bool {
	return !slices.ContainsFunc(overrideAnnotations, func(key string) bool { return work.Annotations[key] != d.overrides[key] })
}

// retained returns the desired Works deleted by another client, if the agent keeps their objects on
// the member. They can be written again at once after their finalizer is removed. Any other agent
// has begun to delete the objects, and the hub waits for it, as after an eviction.
func (w *currentWorks) retained(of types.NamespacedName, desired desiredWorks) (retained []*placement.Work) {
	for i := range desired.parts {
		work := w.find(workName(of, i))
		if work != nil && work.DeletionTimestamp != nil && work.Annotations[placement.AnnotationRetains] == "true" && !removedByHub(work) &&
			slices.Contains(work.Finalizers, placement.FinalizerWork) {
			retained = append(retained, work)
		}
	}
	return retained
}

// removedByHub reports whether a placement or an eviction deletes, or has begun to delete, a
// Work.
func removedByHub(work *placement.Work) bool {
	return work.Annotations[placement.AnnotationRemoved] != "" || work.Annotations[placement.AnnotationEvicted] != ""
}

// unlabelled returns the Works without the labels of their recipient. Earlier hubs did not set
// them. Setting them rolls nothing out.
func (w *currentWorks) unlabelled(member string, epoch int) (works []*placement.Work) {
	labels := delivery.RecipientLabels(member, epoch)
	for _, work := range w.works {
		for key, value := range labels {
			if work.DeletionTimestamp == nil && work.Labels[key] != value {
				works = append(works, work)
				break
			}
		}
	}
	return works
}
