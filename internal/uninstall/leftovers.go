package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// hubManager is the field manager of the hub.
	hubManager = "muster-hub"
	// hubDeployment is the name of a hub's Deployment, in any namespace, and also of Rancher Fleet's.
	hubDeployment = "fleet-controller"
	// labelComponent distinguishes the objects of agents from the objects of the hub.
	labelComponent = "app.kubernetes.io/component"
	ofAgents       = "agent"
	ofHub          = "hub"
)

// Leftover is an unused object of Muster.
type Leftover struct {
	Object
	// Proof is the reason why the object is Muster's, and unused.
	Proof string
	// Finalizers are finalizers of an absent hub or agent. If there are any, RemoveLeftover takes only
	// them off. Otherwise it deletes the object.
	Finalizers []string
}

// Leftovers are the objects left on a cluster by an uninstallation by hand.
type Leftovers struct {
	// Found lists the removable objects, in the order of their removal.
	Found []Leftover
	// Unproved lists objects with the names of Muster's objects, without a proof.
	Unproved []Object
	// Stays has a sentence about each other object, with the cause for keeping it.
	Stays []string

	// gone caches the results of releaseGone. named holds the releases with a sentence in Stays.
	gone, named map[types.NamespacedName]bool
}

// kept adds one sentence to Stays for all objects of a release.
func (l *Leftovers) kept(release types.NamespacedName) {
	if !l.named[release] {
		l.named[release] = true
		l.stays("the objects of Helm release %s: helm -n %s uninstall %s removes them", release, release.Namespace, release.Name)
	}
}

func (l *Leftovers) stays(format string, a ...any) {
	l.Stays = append(l.Stays, fmt.Sprintf(format, a...))
}

func (l *Leftovers) has(uid types.UID) bool {
	return slices.ContainsFunc(l.Found, func(f Leftover) bool { return f.UID == uid })
}

func (l *Leftovers) add(object Object, proof string) {
	if !l.has(object.UID) {
		l.Found = append(l.Found, Leftover{Object: object, Proof: proof})
	}
}

func (l *Leftovers) objects() (objects []Object) {
	for _, f := range l.Found {
		objects = append(objects, f.Object)
	}
	return objects
}

// Leftovers finds the unused objects of Muster on a cluster. While an agent is installed, all
// objects of agents count as used. The same applies to the hub.
func (c Cluster) Leftovers(ctx context.Context) (*Leftovers, error) {
	found := &Leftovers{gone: map[types.NamespacedName]bool{}, named: map[types.NamespacedName]bool{}}
	agents, err := c.Agents(ctx)
	if err != nil {
		return nil, err
	}
	hubs, err := c.list(ctx, kinds[deployments], "", "", "metadata.name="+hubDeployment)
	if err != nil {
		return nil, err
	}
	if len(hubs) > 0 {
		found.stays("the objects of the hub: %s is installed", hubs[0])
	} else if err := c.leftoversOfHub(ctx, found); err != nil {
		return nil, err
	}
	if len(agents) > 0 {
		found.stays("the objects of agents: %s is installed; muster leave --uninstall-agent removes an agent", agents[0])
	} else if err := c.leftoversOfAgents(ctx, found); err != nil {
		return nil, err
	}
	if len(hubs) == 0 {
		if err := c.leftoverDefinitions(ctx, found, len(agents) > 0); err != nil {
			return nil, err
		}
	}
	found.Unproved = slices.DeleteFunc(found.Unproved, func(o Object) bool { return found.has(o.UID) })
	return found, nil
}

// RemoveLeftover deletes an object by its UID, or takes the hub's finalizers off.
func (c Cluster) RemoveLeftover(ctx context.Context, l Leftover) error {
	if len(l.Finalizers) == 0 {
		return c.Delete(ctx, l.Object)
	}
	kept := slices.DeleteFunc(slices.Clone(l.finalizers), func(f string) bool { return slices.Contains(l.Finalizers, f) })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": l.UID, "resourceVersion": l.version, "finalizers": kept,
	}})
	if err != nil {
		return fmt.Errorf("encoding the finalizers of %s: %w", l, err)
	}
	err = c.api.Patch(types.MergePatchType).AbsPath(l.path()).SetHeader("Accept", asJSON).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap(err, "taking finalizers off %s", l)
}

// leftoversOfAgents finds the objects of agents on a cluster without an agent.
func (c Cluster) leftoversOfAgents(ctx context.Context, found *Leftovers) error {
	if err := c.leftoversOfCharts(ctx, found, ofAgents); err != nil {
		return err
	}
	homes, err := c.homes(ctx, found)
	if err != nil {
		return err
	}
	for _, own := range written {
		objects, err := c.list(ctx, kinds[own.resource], "", "", "metadata.name="+own.name)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if homes[object.Namespace] {
				found.add(object, "an agent wrote it into its namespace")
			} else if !found.has(object.UID) {
				found.Unproved = append(found.Unproved, object)
			}
		}
	}
	if err := c.leftoverOfJoin(ctx, found, metav1.NamespaceDefault, naming.HubTokenSecret); err != nil {
		return err
	}
	for _, home := range slices.Sorted(maps.Keys(homes)) {
		if err := c.leftoverOfJoin(ctx, found, home, naming.HubKubeconfigSecret); err != nil {
			return err
		}
		if err := c.leftoverHistory(ctx, found, home); err != nil {
			return err
		}
		if err := c.leftoverNamespace(ctx, found, home); err != nil {
			return err
		}
	}
	return c.deliveries(ctx, found)
}

// leftoverOfJoin finds a Secret from muster join.
func (c Cluster) leftoverOfJoin(ctx context.Context, found *Leftovers, namespace, name string) error {
	secret, err := c.get(ctx, kinds[secrets], namespace, name)
	if err == nil && secret.Labels[labelManagedBy] == byMuster {
		found.add(*secret, "muster join created it for an agent")
	} else if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// homes returns the namespaces with the key of an agent. Only Muster's agents create such a key.
func (c Cluster) homes(ctx context.Context, found *Leftovers) (map[string]bool, error) {
	homes := map[string]bool{}
	keys, err := c.list(ctx, kinds[secrets], "", "", "metadata.name="+naming.AgentKeySecret)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		body, err := c.api.Get().AbsPath(key.path()).SetHeader("Accept", asJSON).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		var secret corev1.Secret
		if err := json.Unmarshal(body, &secret); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", key, err)
		}
		if _, err := credential.ParseAgentKey(secret.Data["key"]); err == nil && len(secret.Data) == 1 && secret.UID == key.UID {
			homes[key.Namespace] = true
			found.add(key, "it has the key of an agent")
		}
	}
	return homes, nil
}

// leftoverHistory finds the histories of uninstalled agents in the namespace of an agent.
func (c Cluster) leftoverHistory(ctx context.Context, found *Leftovers, namespace string) error {
	for _, kind := range []Kind{kinds[secrets], kinds[configMaps]} {
		objects, err := c.List(ctx, kind, namespace, "owner=helm,status=uninstalled,name in (fleet-agent,member-agent)")
		if err != nil {
			return err
		}
		for _, object := range objects {
			found.add(object, "it is the history of an uninstalled agent")
		}
	}
	return nil
}

// leftoverNamespace finds the namespace of an agent, if everything else in it is a leftover.
func (c Cluster) leftoverNamespace(ctx context.Context, found *Leftovers, name string) error {
	namespace, err := c.get(ctx, kinds[namespaces], "", name)
	if err != nil {
		return err
	}
	release := releaseOf(namespace)
	if release.Name == "" && namespace.Labels[labelHelmMade] != name {
		found.stays("%s: Helm has not created it", namespace)
		return nil
	} else if release.Name != "" {
		gone, err := c.releaseGone(ctx, found, release)
		if err != nil {
			return err
		} else if !gone {
			found.kept(release)
			return nil
		}
	}
	foreign, err := c.foreignIn(ctx, name, found.objects())
	if err == nil && foreign == nil {
		found.add(*namespace, "Helm created it, and only leftovers are in it")
		return nil
	} else if err == nil {
		err = fmt.Errorf("it also contains %s", foreign)
	}
	found.stays("%s: %s", namespace, err)
	return nil
}

// deliveries names deliveries on a cluster without an agent. They are workloads, not leftovers.
func (c Cluster) deliveries(ctx context.Context, found *Leftovers) error {
	releases, err := c.List(ctx, kinds[secrets], "", "owner=helm,"+naming.LabelMember)
	if err != nil {
		return err
	}
	if len(releases) > 0 {
		found.stays("%d Helm releases of Bundles, with their objects: helm uninstall removes them, %s first", len(releases), releases[0])
	}
	return nil
}

// leftoversOfCharts finds objects of Muster's charts without their release, by the charts' label.
func (c Cluster) leftoversOfCharts(ctx context.Context, found *Leftovers, component string) error {
	for _, kind := range slices.Concat(chartKinds(), policyKinds) {
		objects, err := c.List(ctx, kind, "", labelManagedBy+"="+byHelm)
		if apierrors.IsNotFound(err) {
			continue // the cluster does not serve the kind
		} else if err != nil {
			return err
		}
		for _, object := range objects {
			release := releaseOf(&object)
			ofMusters := object.Labels["app.kubernetes.io/part-of"] == byMuster && object.Labels[labelComponent] == component
			if !ofMusters && !isUsual(component, release.Name) {
				continue
			}
			gone, err := c.releaseGone(ctx, found, release)
			switch {
			case err != nil:
				return err
			case !gone && ofMusters:
				found.kept(release)
			case !gone:
			case ofMusters:
				found.add(object, fmt.Sprintf("it is of Muster's chart, and its Helm release %s is gone", release))
			default:
				found.Unproved = append(found.Unproved, object)
			}
		}
	}
	return nil
}

// isUsual reports whether a release has the usual name of Muster's charts. Other projects use the
// same names.
func isUsual(component, release string) bool {
	if component == ofAgents {
		return release == naming.AgentBundlePrefix || release == naming.MemberAgentChart
	}
	return release == "fleet"
}

// releaseGone reports whether Helm has no history of a release, or only of an uninstalled one.
func (c Cluster) releaseGone(ctx context.Context, found *Leftovers, release types.NamespacedName) (bool, error) {
	if gone, known := found.gone[release]; known {
		return gone, nil
	}
	for _, kind := range []Kind{kinds[secrets], kinds[configMaps]} {
		history, err := c.List(ctx, kind, release.Namespace, "owner=helm,status!=uninstalled,name="+release.Name)
		if err != nil {
			return false, err
		}
		if len(history) > 0 {
			found.gone[release] = false
			return false, nil
		}
	}
	found.gone[release] = true
	return true, nil
}

// chartKinds returns the kinds of the charts without a rule of their own.
func chartKinds() (listed []Kind) {
	for _, resource := range []string{
		"serviceaccounts", configMaps, "networkpolicies", "poddisruptionbudgets", "roles", "rolebindings", clusterRoles, "clusterrolebindings",
		"priorityclasses",
	} {
		listed = append(listed, kinds[resource])
	}
	return listed
}
