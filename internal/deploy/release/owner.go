package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// agentRelease is the name of the own release of a Cluster's agent, of its chart and of its
	// Deployment.
	agentRelease = "fleet-agent"
	// agentAccount is the ServiceAccount of a Cluster's agent.
	agentAccount = "fleet-agent"
)

// Agent is the own release of an agent.
type Agent struct {
	ID
	// Chart is the name of its chart, Deployment the name of its Deployment in the namespace of the
	// agent.
	Chart, Deployment string
}

// Owner is the owning Bundle of a release.
type Owner struct {
	// Bundle is the name of the BundleDeployment.
	Bundle string
	// Workspace is the namespace of the Bundle on the hub; empty if unknown.
	Workspace string
	// Member is the UID of the member's report. If empty, releases of earlier memberships of this
	// cluster also belong to the owner.
	Member string
}

// Foreign is the error for a release of another owner.
type Foreign struct {
	// Release is the release, Owner its owner.
	Release ID
	Owner   string
}

func (f *Foreign) Error() string {
	return fmt.Sprintf("release %s in namespace %s belongs to %s", f.Release.Name, f.Release.Namespace, f.Owner)
}

// IsForeign reports whether an error means another owner of a release.
func IsForeign(err error) bool {
	var foreign *Foreign
	return errors.As(err, &foreign)
}

// names are the reserved releases and their Bundles.
type names struct {
	mu       sync.Mutex
	reserved map[ID]string
}

// take reserves a release for a Bundle until free is called.
func (n *names) take(release ID, bundle string) (func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bundle, taken := n.reserved[release]; taken {
		return nil, fmt.Errorf("release %s: %w", release, &reservedError{bundle})
	}
	n.reserved[release] = bundle
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.reserved, release)
	}, nil
}

// reservedError is the error for a release in use by another Bundle.
type reservedError struct{ bundle string }

func (b *reservedError) Error() string { return "Bundle " + b.bundle + " is at work on it" }

// Is lets errors.Is match ErrBusy.
func (*reservedError) Is(target error) bool { return target == ErrBusy }

// checkOwner returns an error unless the release is missing or belongs to the owner. The caller has
// reserved the release, so the answer stays true.
func (c *Cluster) checkOwner(ctx context.Context, id ID, histories string, o Owner) error {
	history, err := c.history(ctx, id.Name, histories)
	if err != nil || len(history) == 0 {
		return err
	}
	newest := history[len(history)-1]
	if owner := c.ownerOf(newest.stored, o); owner != "" {
		return &Foreign{Release: id, Owner: owner}
	}
	if newest.Namespace != id.Namespace {
		return &Foreign{Release: id, Owner: fmt.Sprintf("Bundle %s, but of namespace %s", o.Bundle, newest.Namespace)}
	}
	for _, one := range history {
		// Helm uses the last deployed revision if the newest was not carried out, and deletes its dropped
		// objects.
		standsIn := one.Info.Status == common.StatusDeployed ||
			one.Info.Status == common.StatusSuperseded && newest.Info.Status != common.StatusDeployed
		if owner := c.ownerOf(one.stored, Owner{Bundle: o.Bundle, Workspace: o.Workspace}); standsIn && owner != "" {
			return &Foreign{Release: id, Owner: fmt.Sprintf("%s, by its revision %d", owner, one.Version)}
		}
	}
	return nil
}

// ownerOf names the owner of a revision, if it is another one.
func (c *Cluster) ownerOf(s stored, o Owner) string {
	annotations := s.Chart.Metadata.Annotations
	bundle, namespace, workspace := annotations[annotationBundle], annotations[annotationAgentNamespace], annotations[annotationWorkspace]
	switch {
	case bundle == "":
		return "a user who installed it with Helm"
	case namespace != c.AgentNamespace:
		return fmt.Sprintf("Bundle %s, delivered by the agent in namespace %s", bundle, namespace)
	case bundle != o.Bundle, workspace != "" && o.Workspace != "" && workspace != o.Workspace:
		if workspace == "" {
			return "Bundle " + bundle
		}
		return fmt.Sprintf("Bundle %s of namespace %s", bundle, workspace)
	case o.Member != "" && s.member != o.Member:
		return fmt.Sprintf("Bundle %s of another membership of this cluster", bundle)
	}
	return ""
}

// history returns all revisions of a release in a namespace, the oldest first, without notes of
// corrections.
func (c *Cluster) history(ctx context.Context, name, namespace string) ([]revision, error) {
	all, err := c.secrets(ctx, name, namespace)
	return slices.DeleteFunc(all, func(r revision) bool { return r.isCorrectionNote() }), err
}

// ofRelease selects the Secrets of one release.
func ofRelease(name string) string { return OwnedByHelm + ",name=" + name }

// read decodes the revision in a Secret.
func read(secret *corev1.Secret) (stored, error) {
	var s stored
	if err := decode(secret, &s); err != nil {
		return s, err
	}
	if s.Name != secret.Labels["name"] || strconv.Itoa(s.Version) != secret.Labels["version"] {
		return s, unreadable(secret, fmt.Errorf("its labels name revision %s of release %s, and it holds revision %d of %s",
			secret.Labels["version"], secret.Labels["name"], s.Version, s.Name))
	}
	s.member, s.hubVersion = secret.Labels[naming.LabelMember], secret.Labels[labelHubVersion]
	s.hubUID = secret.Labels[labelHubUID]
	s.hubRestored, s.renamed = secret.Labels[labelHubRestored] != "", secret.Labels[labelRenamed] != ""
	s.compared, s.jobs = string(secret.Data[keyCompared]), string(secret.Data[keyJobs])
	s.history, s.copied = secret.Namespace, secret.Annotations[annotationCopyOf] != ""
	return s, nil
}
