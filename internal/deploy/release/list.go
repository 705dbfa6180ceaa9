package release

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

// Found is the result of List.
type Found struct {
	// Releases are those that an agent of this namespace deployed, by the name of the BundleDeployment; of several for one Bundle the one that was
	// deployed last. A release whose newest revision is somebody else's is not among them.
	Releases map[string]Summary
	// Unreadable are the Secrets in the agent's namespace, or with a member's label, from which no release can be read, by namespace and name.
	Unreadable map[string]Unreadable
}

// Unreadable is a Secret without a readable release.
type Unreadable struct {
	// Member is that of its label, Why says what is wrong and what to do.
	Member string
	Why    error
}

// List finds the releases that an agent of this namespace deployed, in all namespaces.
func (c *Cluster) List(ctx context.Context) (Found, error) {
	histories := c.newHistories()
	if err := c.eachSecret(ctx, metav1.NamespaceAll, OwnedByHelm, histories.add); err != nil {
		return Found{}, fmt.Errorf("listing the releases: %w", err)
	}
	return Found{Releases: histories.newest(), Unreadable: histories.unreadable}, nil
}

// FindRelease finds, among some releases, the one that an agent of this namespace deployed for a Bundle.
func (c *Cluster) FindRelease(ctx context.Context, bundle string, among ...ID) (Summary, bool, error) {
	histories := c.newHistories()
	for _, id := range among {
		for _, namespace := range []string{id.Namespace, c.AgentNamespace} {
			if err := c.eachSecret(ctx, namespace, ofRelease(id.Name), histories.add); err != nil {
				return Summary{}, false, fmt.Errorf("reading the history of release %s: %w", id, err)
			}
		}
	}
	found, there := histories.newest()[bundle]
	return found, there, nil
}

// eachSecret calls take with each selected Secret, reading page by page.
func (c *Cluster) eachSecret(ctx context.Context, namespace, selector string, take func(*corev1.Secret)) error {
	for options := (metav1.ListOptions{LabelSelector: selector, Limit: page}); ; {
		list, err := c.Kube.CoreV1().Secrets(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			take(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// histories are the releases that were found, by where their histories are.
type histories struct {
	cluster    *Cluster
	last       map[place]int
	ours       map[place]Summary
	unreadable map[string]Unreadable
}

// place is a release and the namespace of its history.
type place struct {
	ID
	history string
}

func (c *Cluster) newHistories() *histories {
	return &histories{cluster: c, last: map[place]int{}, ours: map[place]Summary{}, unreadable: map[string]Unreadable{}}
}

// add adds a revision.
func (h *histories) add(secret *corev1.Secret) {
	s, err := read(secret)
	if err != nil {
		// What others keep in their namespaces is not the agent's concern.
		if member := secret.Labels[naming.LabelMember]; member != "" || secret.Namespace == h.cluster.AgentNamespace {
			h.unreadable[secret.Namespace+"/"+secret.Name] = Unreadable{member, err}
		}
		return
	}
	if s.isCorrectionNote() {
		return
	}
	at := place{ID{s.Namespace, s.Name}, s.history}
	h.last[at] = max(h.last[at], s.Version)
	if summary, ours := h.cluster.summarize(s); ours && h.ours[at].Version < summary.Version {
		h.ours[at] = summary
	}
}

// newest are the releases by Bundle.
func (h *histories) newest() map[string]Summary {
	found := map[string]Summary{}
	for at, s := range h.ours {
		if !s.Agent && s.Version < h.last[at] {
			continue
		}
		if other, there := found[s.Bundle]; !there || s.supersedes(other) {
			found[s.Bundle] = s
		}
	}
	return found
}

// supersedes says whether a release, of two of one Bundle, is the current one: the one that was deployed last. While a history is being moved each
// revision is there twice; then it is the one that is no copy, so that the move goes on.
func (s Summary) supersedes(other Summary) bool {
	if !s.DeployedAt.Equal(other.DeployedAt) {
		return s.DeployedAt.After(other.DeployedAt)
	}
	if s.Copied != other.Copied {
		return other.Copied
	}
	return s.String() < other.String()
}
