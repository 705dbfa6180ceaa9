package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// leftoversRetry is the interval between searches for leftovers of KubeFleet's hub, because the
// hub does not watch them.
const leftoversRetry = 5 * time.Minute

// inheritedFrom returns the placement of a Work written by KubeFleet's hub and not taken over.
func inheritedFrom(work metav1.Object) (types.NamespacedName, bool) {
	of := labelledParent(work)
	return of, of.Name != "" && work.GetLabels()[fleet.LabelManaged] != "true"
}

// observeKubeFleet takes over the Works of a placement written by KubeFleet's hub, or notes the
// reason against it. It also looks for other leftovers of KubeFleet's hub. It returns the longest
// wait until the cache shows the take-over.
func (c *Controller) observeKubeFleet(ctx context.Context, s genericPlacement, o *observed) (wait time.Duration, err error) {
	if o.selectionProblem() == (condition{}) { // else the right Work of each object is unknown
		works, err := c.inheritedWorks(ctx, s.key, len(o.parts))
		if err != nil {
			return 0, err
		}
		if o.takeoverProblem, err = c.movedObject(ctx, s.key, o.parts, works); err != nil {
			return 0, err
		}
		if len(works) > 0 && o.takeoverProblem == "" {
			if err := c.takeOver(ctx, s.key, works); err != nil {
				return 0, err
			}
			return maxCacheLag, nil
		}
	}
	o.leftovers, err = c.findLeftovers(ctx, s)
	return 0, err
}

// takeOver sets Muster's label on Works and changes nothing else. Members keep their workload,
// and agents continue with the existing AppliedWorks.
func (c *Controller) takeOver(ctx context.Context, key types.NamespacedName, works []*placement.Work) error {
	for _, work := range works {
		after := work.DeepCopy()
		metav1.SetMetaDataLabel(&after.ObjectMeta, fleet.LabelManaged, "true")
		if err := kube.Patch(ctx, c.Client, work, after); err != nil {
			return fmt.Errorf("taking over Work %s/%s from KubeFleet's hub: %w", work.Namespace, work.Name, err)
		}
		c.workWrites.Expect(key, after)
	}
	return nil
}

// listInherited returns the Works of a placement written by KubeFleet's hub.
func (c *Controller) listInherited(ctx context.Context, key types.NamespacedName) (placement.WorkList, error) {
	var works placement.WorkList
	if err := c.Client.List(ctx, &works, client.MatchingFields{byInherited: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return works, fmt.Errorf("listing the Works of %s that another hub wrote: %w", key, err)
	}
	return works, nil
}

// inheritedWorks returns the Works to take over for a placement with this number of parts: Works
// with a name that Muster would use. Others are leftovers.
func (c *Controller) inheritedWorks(ctx context.Context, key types.NamespacedName, parts int) (inherited []*placement.Work, err error) {
	works, err := c.listInherited(ctx, key)
	if err != nil {
		return nil, err
	}
	for i := range works.Items {
		work := &works.Items[i]
		if part, named := partOf(key, work.Name); !named || part >= parts {
			continue
		}
		isMembers, err := c.inMemberNamespace(ctx, work)
		if err != nil {
			return nil, err
		}
		if isMembers {
			inherited = append(inherited, work)
		}
	}
	return inherited, nil
}

// movedObject returns an object that a take-over would move to another Work, "" if there is none.
// An agent deletes an object with its old Work, before the new Work creates it again.
func (c *Controller) movedObject(ctx context.Context, key types.NamespacedName, parts []part, works []*placement.Work) (string, error) {
	if len(parts) == 1 {
		return "", nil
	}
	for _, work := range works {
		var whole placement.Work // the cache has no manifests
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(work), &whole); err != nil {
			return "", fmt.Errorf("reading Work %s/%s of KubeFleet's hub: %w", work.Namespace, work.Name, err)
		}
		if moved := moves(key, parts, &whole); moved != "" {
			return moved, nil
		}
	}
	return "", nil
}

// moves returns a message about an object for another Work; "" if there is none.
func moves(key types.NamespacedName, parts []part, work *placement.Work) string {
	home := map[string]int{}
	for i, p := range parts {
		for _, m := range p.manifests {
			home[identityOf(m)] = i
		}
	}
	current, _ := partOf(key, work.Name)
	for _, m := range work.Spec.Workload.Manifests {
		if wanted, placed := home[identityOf(m)]; placed && wanted != current {
			return fmt.Sprintf("Work %s/%s of KubeFleet's hub has %s. Muster would move it to Work %s, and the agent would delete and create it: "+
				"divide the placement into several before Muster takes over, or delete the Works of KubeFleet's hub. The deletion removes "+
				"their objects until Muster has placed them", work.Namespace, work.Name, identityOf(m), workName(key, wanted))
		}
	}
	return ""
}

// identityOf names the object of a manifest.
func identityOf(m placement.Manifest) string {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(m.Raw, &o); err != nil {
		return "an object that cannot be read"
	}
	return identity(o.Kind, o.APIVersion, o.Namespace, o.Name)
}

// identity names an object in any version.
func identity(kind, apiVersion, namespace, name string) string {
	if group, _, grouped := strings.Cut(apiVersion, "/"); grouped {
		kind += "." + group
	}
	return kube.Name(kind, namespace, name)
}

// parseIdentity returns the object of an identity, without a version.
func parseIdentity(id string) (of placement.ResourceIdentifier) {
	kind, name, _ := strings.Cut(id, " ")
	of.Kind, of.Group, _ = strings.Cut(kind, ".")
	if namespace, rest, namespaced := strings.Cut(name, "/"); namespaced {
		of.Namespace, of.Name = namespace, rest
	} else {
		of.Name = name
	}
	return of
}

// partOf returns the part of a placement for the name of a Work.
func partOf(of types.NamespacedName, name string) (int, bool) {
	if name == workName(of, 0) {
		return 0, true
	}
	number, numbered := strings.CutPrefix(name, strings.TrimSuffix(workName(of, 0), "work"))
	part, err := strconv.Atoi(number)
	return part, numbered && err == nil && part > 0 && name == workName(of, part)
}

// inMemberNamespace reports whether a Work is in a namespace created for a MemberCluster. Works
// elsewhere, regardless of their labels, are not touched.
func (c *Controller) inMemberNamespace(ctx context.Context, work *placement.Work) (bool, error) {
	name, ok := membernamespace.MemberClusterOf(work.Namespace)
	if !ok {
		return false, nil
	}
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, &mc); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	state, _, err := membernamespace.OfMemberCluster(&mc).ObserveNamespace(ctx, c.Live)
	return state == membernamespace.NamespaceOurs || state == membernamespace.NamespaceInherited, err
}

// nothingLeft reports whether the hub has searched for a placement's leftovers of KubeFleet's
// hub, and found none. No new ones appear.
func (c *Controller) nothingLeft(s genericPlacement) (nothing bool) {
	c.memory.update(s.key, func(p *placementMemory) { nothing = p.leftovers != nil && *p.leftovers == "" })
	return nothing
}

// findLeftovers returns a message about a placement's leftovers of KubeFleet's hub, with the
// commands to remove them; "" if there are none.
func (c *Controller) findLeftovers(ctx context.Context, s genericPlacement) (objects string, err error) {
	if !c.nothingLeft(s) {
		if objects, err = c.leftoverObjects(ctx, s); err != nil {
			return "", err
		}
		found := objects
		c.memory.update(s.key, func(p *placementMemory) { p.leftovers = &found })
	}
	return objects, nil
}

func (c *Controller) leftoverObjects(ctx context.Context, s genericPlacement) (string, error) {
	left, hidden, err := c.listLeftovers(ctx, s)
	if err != nil {
		return "", err
	}
	var found []string
	counts := map[string]int{}
	for _, resource := range hidden {
		counts[resource] = 0
		found = append(found, "an unknown number of "+resource+", which the hub cannot list")
	}
	for _, l := range left {
		counts[l.resource]++
	}
	resources := slices.Sorted(maps.Keys(counts))
	for _, resource := range resources {
		if count := counts[resource]; count > 0 {
			found = append(found, fmt.Sprintf("%d %s", count, resource))
		}
	}
	works, err := c.listInherited(ctx, s.key)
	if err != nil {
		return "", err
	}
	var others []string
	for i := range works.Items {
		others = append(others, fmt.Sprintf("Work %s/%s", works.Items[i].Namespace, works.Items[i].Name))
	}
	slices.Sort(found)
	slices.Sort(others)
	return describeLeftovers(s, found, resources, others), nil
}

// leftoversOf returns the selector for objects written by KubeFleet's hub for a placement,
// without Muster's bindings.
func leftoversOf(s genericPlacement) string {
	return fmt.Sprintf("%s=%s,%s!=true", placement.LabelParentCRP, s.key.Name, fleet.LabelManaged)
}

// describeLeftovers returns a message about the found objects, their resources, the Works not
// taken over, and the commands to remove them.
func describeLeftovers(s genericPlacement, found, resources, works []string) string {
	var texts []string
	if len(found) > 0 {
		where := ""
		if s.key.Namespace != "" {
			where = " -n " + s.key.Namespace
		}
		which := fmt.Sprintf("%s%s -l %s", strings.Join(resources, ","), where, leftoversOf(s))
		texts = append(texts, fmt.Sprintf("KubeFleet's hub left %s of the placement. Nothing uses them, and the hub deletes them "+
			"together with the placement. If KubeFleet's hub is gone for good: kubectl delete --wait=false %s; for o in $(kubectl get -o name %s); "+
			`do kubectl patch%s $o --type=merge -p '{"metadata":{"finalizers":null}}'; done`, strings.Join(found, ", "), which, which, where))
	}
	if len(works) > 0 {
		texts = append(texts, fmt.Sprintf("%s of KubeFleet's hub do not belong to Muster, and stay. Delete them once their objects are no "+
			"longer needed: the deletion removes these objects", list(works)))
	}
	return strings.Join(texts, "; ")
}
