package release

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// agentRelease is the name of the agent's own release, and of its chart.
	agentRelease = "fleet-agent"
	// agentAccount is the agent's own ServiceAccount.
	agentAccount = "fleet-agent"
)

// Owner is on whose behalf something is done to a release.
type Owner struct {
	// Bundle is the name of the BundleDeployment.
	Bundle string
	// Workspace is the namespace of the Bundle on the hub; empty if that is not known.
	Workspace string
	// Member is the UID of the member's report. If it is empty, a release of an earlier membership of this cluster is the owner's too.
	Member string
}

// Foreign says that a release belongs to somebody else than the one who wants to change it.
type Foreign struct {
	// Release is the name of the release, Namespace where its history is, Owner whom it belongs to.
	Release, Namespace, Owner string
}

func (f *Foreign) Error() string {
	return fmt.Sprintf("release %s in namespace %s belongs to %s", f.Release, f.Namespace, f.Owner)
}

// IsForeign says whether an error is that a release belongs to somebody else.
func IsForeign(err error) bool {
	var foreign *Foreign
	return errors.As(err, &foreign)
}

// names keep those apart who work on one release.
type names struct {
	mu   sync.Mutex
	held map[string]string
}

// take reserves the name of a release for a Bundle, until what it returns is called.
func (n *names) take(release, bundle string) (func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if holder, held := n.held[release]; held {
		return nil, fmt.Errorf("release %s: %w", release, &beingChanged{holder})
	}
	n.held[release] = bundle
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.held, release)
	}, nil
}

// beingChanged says that another Bundle works on a release at the moment.
type beingChanged struct{ bundle string }

func (b *beingChanged) Error() string { return "Bundle " + b.bundle + " is at work on it" }

// Is makes it one of the reasons to come again soon.
func (*beingChanged) Is(target error) bool { return target == ErrBusy }

// mine is nil if a release is the owner's, or if there is none of that name. It is asked while the name is reserved, so that it stays true.
func (c *Cluster) mine(ctx context.Context, name string, o Owner) error {
	history, err := c.history(ctx, name)
	if err != nil || len(history) == 0 {
		return err
	}
	newest := history[0]
	for _, one := range history {
		if one.Version > newest.Version {
			newest = one
		}
	}
	if owner := c.ownerOf(newest, o); owner != "" {
		return &Foreign{Release: name, Namespace: c.AgentNamespace, Owner: owner}
	}
	for _, one := range history {
		// Helm goes by the last revision that was carried out if the newest was not, and deletes what only that had.
		standsIn := one.Info.Status == common.StatusDeployed ||
			one.Info.Status == common.StatusSuperseded && newest.Info.Status != common.StatusDeployed
		if owner := c.ownerOf(one, Owner{Bundle: o.Bundle, Workspace: o.Workspace}); standsIn && owner != "" {
			return &Foreign{Release: name, Namespace: c.AgentNamespace, Owner: fmt.Sprintf("%s, by its revision %d", owner, one.Version)}
		}
	}
	return nil
}

// ownerOf words whom a revision belongs to, if that is not the owner.
func (c *Cluster) ownerOf(s stored, o Owner) string {
	annotations := s.Chart.Metadata.Annotations
	bundle, namespace, workspace := annotations[annotationBundle], annotations[annotationAgentNamespace], annotations[annotationWorkspace]
	switch {
	case bundle == "":
		return "somebody who installed it with Helm"
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

// history is every revision of a release, in no order. One that cannot be read is an error: nobody can say whose the release is then.
func (c *Cluster) history(ctx context.Context, name string) ([]stored, error) {
	list, err := c.Kube.CoreV1().Secrets(c.AgentNamespace).List(ctx, metav1.ListOptions{LabelSelector: OwnedByHelm + ",name=" + name})
	if err != nil {
		return nil, fmt.Errorf("reading the history of release %s: %w", name, err)
	}
	history := make([]stored, 0, len(list.Items))
	for i := range list.Items {
		one, err := read(&list.Items[i])
		if err != nil {
			return nil, err
		}
		history = append(history, one)
	}
	return history, nil
}

// read is the revision in a Secret.
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
	s.hubRestored = secret.Labels[labelHubRestored] != ""
	return s, nil
}
