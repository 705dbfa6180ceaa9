package release

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

// Found is the result of List.
type Found struct {
	// Releases are the releases of agents of this namespace by BundleDeployment: the last deployed
	// one, then the remaining ones from before a move. A release with a newest revision of another
	// client is not included.
	Releases map[string][]Summary
	// Unreadable are Secrets without a readable release, in the agent's namespace or with a member's
	// label, by namespace and name.
	Unreadable map[string]Unreadable
}

// Unreadable is a Secret without a readable release.
type Unreadable struct {
	// Member is the member of the label, Why the problem and its remedy.
	Member string
	Why    error
}

// List finds the releases of agents of this namespace, in all namespaces.
func (c *Cluster) List(ctx context.Context) (Found, error) {
	histories := c.newHistories()
	if err := c.eachSecret(ctx, metav1.NamespaceAll, OwnedByHelm, histories.add); err != nil {
		return Found{}, fmt.Errorf("listing the releases: %w", err)
	}
	return Found{Releases: histories.newest(), Unreadable: histories.unreadable}, nil
}

// FindReleases finds the releases of agents of this namespace for a Bundle among some releases, as
// List does.
func (c *Cluster) FindReleases(ctx context.Context, bundle string, among ...ID) ([]Summary, error) {
	histories := c.newHistories()
	for _, id := range among {
		for _, namespace := range []string{id.Namespace, c.AgentNamespace} {
			if err := c.eachSecret(ctx, namespace, ofRelease(id.Name), histories.add); err != nil {
				return nil, fmt.Errorf("reading the history of release %s: %w", id, err)
			}
		}
	}
	return histories.newest()[bundle], nil
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

// histories are the found releases, by the place of their histories.
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
		// Unreadable Secrets in other namespaces do not concern the agent.
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

// newest returns the releases by Bundle, the current one first.
func (h *histories) newest() map[string][]Summary {
	found := map[string][]Summary{}
	for at, s := range h.ours {
		if s.Agent || s.Version >= h.last[at] {
			found[s.Bundle] = append(found[s.Bundle], s)
		}
	}
	for bundle, summaries := range found {
		slices.SortFunc(summaries, func(a, b Summary) int {
			switch {
			case a.supersedes(b):
				return -1
			case b.supersedes(a):
				return 1
			}
			return 0
		})
		found[bundle] = linked(summaries)
	}
	return found
}

// linked returns the first release and, transitively, its former releases. No other release of the
// Bundle is known to belong to the same BundleDeployment.
func linked(summaries []Summary) []Summary {
	chain, rest := summaries[:1:1], summaries[1:]
	for i := 0; i < len(chain); i++ {
		rest = slices.DeleteFunc(slices.Clone(rest), func(other Summary) bool {
			is := chain[i].ID() != other.ID() && (chain[i].movedFrom(other.ID()) || other.movedFrom(chain[i].ID()))
			if is {
				chain = append(chain, other)
			}
			return is
		})
	}
	return chain
}

// supersedes reports whether the release is the current one of two of a Bundle: the last deployed
// one. During a move of a history each revision exists twice. The original is then current, so the
// move continues.
func (s Summary) supersedes(other Summary) bool {
	if !s.DeployedAt.Equal(other.DeployedAt) {
		return s.DeployedAt.After(other.DeployedAt)
	}
	if s.Copied != other.Copied {
		return other.Copied
	}
	return s.String() < other.String()
}
