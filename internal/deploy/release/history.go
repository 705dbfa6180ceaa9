package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/naming"
)

// Annotations of the chart of a release; those of fleet.cattle.io are upstream's.
const (
	annotationBundle          = "fleet.cattle.io/bundle-id"
	annotationAgentNamespace  = "fleet.cattle.io/agent-namespace"
	annotationServiceAccount  = "fleet.cattle.io/service-account"
	annotationKeepResources   = "fleet.cattle.io/keep-resources"
	annotationCommit          = "fleet.cattle.io/commit"
	annotationWorkspace       = "muster/bundle-namespace"
	annotationDeploymentID    = "muster/deployment-id"
	annotationSyncGeneration  = "muster/sync-generation"
	annotationDeleteNamespace = "muster/delete-namespace"
)

const (
	// OwnedByHelm selects the Secrets in which Helm keeps releases.
	OwnedByHelm = "owner=helm"
	// page is how many histories are held at a time while they are looked through.
	page = 20
)

// Summary is what is known of a release without its manifest.
type Summary struct {
	// Name and Namespace of the release, Version its newest revision.
	Name, Namespace string
	Version         int
	// Deployed says that the newest revision was carried out.
	Deployed bool
	// Bundle is the name of the BundleDeployment, Workspace the namespace of its Bundle on the hub; that is empty for a release that an
	// upstream agent or an earlier version made.
	Bundle, Workspace string
	// DeploymentID is empty for a release that an upstream agent made.
	DeploymentID   string
	SyncGeneration int64
	// KeepResources, DeleteNamespace and ServiceAccount are the options that matter when the BundleDeployment is gone.
	KeepResources, DeleteNamespace bool
	ServiceAccount                 string
	// Member is empty for a release that an upstream agent made, and for the agent's own.
	Member string
	// HubVersion is the resource version that its BundleDeployment had when it was deployed; HubRestored says that the hub was restored from an
	// earlier state since, which does not know that.
	HubVersion  string
	HubRestored bool
	// Agent says that it is the release of the agent itself.
	Agent bool
}

// String is the release as status shows it.
func (s Summary) String() string { return fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Version) }

// stored is what is read of a history.
type stored struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Info      struct {
		Status common.Status `json:"status"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"chart"`
	// member, hubVersion and hubRestored are those of the Secret's labels.
	member, hubVersion string
	hubRestored        bool
}

// Found is what a look at all histories finds.
type Found struct {
	// Releases are those that an agent of this namespace delivered, by the name of the BundleDeployment. A release whose newest revision is
	// somebody else's is not among them.
	Releases map[string]Summary
	// Unreadable are the Secrets that Helm made, or is said to have made, out of which no release can be read, by their names.
	Unreadable map[string]Unreadable
}

// Unreadable is a Secret that holds no release.
type Unreadable struct {
	// Member is that of its label, Why says what is wrong with it and what to do.
	Member string
	Why    error
}

// List finds the releases that an agent of this namespace delivered.
func (c *Cluster) List(ctx context.Context) (Found, error) {
	found := Found{Releases: map[string]Summary{}, Unreadable: map[string]Unreadable{}}
	newest := map[string]int{}
	options := metav1.ListOptions{LabelSelector: OwnedByHelm, Limit: page}
	for {
		list, err := c.Kube.CoreV1().Secrets(c.AgentNamespace).List(ctx, options)
		if err != nil {
			return found, fmt.Errorf("listing the releases in namespace %s: %w", c.AgentNamespace, err)
		}
		for i := range list.Items {
			s, err := read(&list.Items[i])
			if err != nil {
				found.Unreadable[list.Items[i].Name] = Unreadable{list.Items[i].Labels[naming.LabelMember], err}
				continue
			}
			newest[s.Name] = max(newest[s.Name], s.Version)
			if summary, ours := c.summarize(s); ours && found.Releases[summary.Bundle].Version < summary.Version {
				found.Releases[summary.Bundle] = summary
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	maps.DeleteFunc(found.Releases, func(_ string, s Summary) bool { return !s.Agent && s.Version < newest[s.Name] })
	return found, nil
}

// summarize says what a revision is, if an agent of this namespace made it.
func (c *Cluster) summarize(s stored) (Summary, bool) {
	annotations := s.Chart.Metadata.Annotations
	if annotations[annotationBundle] == "" || annotations[annotationAgentNamespace] != c.AgentNamespace {
		return Summary{}, false
	}
	_, adopted := annotations[annotationOwnValues]
	generation, err := strconv.ParseInt(annotations[annotationSyncGeneration], 10, 64)
	if err != nil {
		generation = 0
	}
	return Summary{
		Name: s.Name, Namespace: s.Namespace, Version: s.Version,
		Deployed:        s.Info.Status == common.StatusDeployed,
		Bundle:          annotations[annotationBundle],
		Workspace:       annotations[annotationWorkspace],
		DeploymentID:    annotations[annotationDeploymentID],
		SyncGeneration:  generation,
		KeepResources:   annotations[annotationKeepResources] == strconv.FormatBool(true),
		DeleteNamespace: annotations[annotationDeleteNamespace] == strconv.FormatBool(true),
		ServiceAccount:  annotations[annotationServiceAccount],
		Member:          s.member,
		HubVersion:      s.hubVersion,
		HubRestored:     s.hubRestored,
		Agent:           adopted,
	}, true
}

// Objects are those of the revision, as they were rendered.
func (c *Cluster) Objects(ctx context.Context, s Summary) ([]*unstructured.Unstructured, error) {
	secret, err := c.Kube.CoreV1().Secrets(c.AgentNamespace).Get(ctx, SecretName(s), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the history of release %s: %w", s, err)
	}
	var manifest struct {
		Manifest string `json:"manifest"`
	}
	if err := decode(secret, &manifest); err != nil {
		return nil, err
	}
	objects, err := parse([]byte(manifest.Manifest))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of release %s: %w", s, err)
	}
	return objects, nil
}

// SecretName is that of the Secret in which Helm keeps a revision.
func SecretName(s Summary) string { return fmt.Sprintf("sh.helm.release.v1.%s.v%d", s.Name, s.Version) }

// Owner is whom a release belongs to.
func (s Summary) Owner() Owner {
	return Owner{Bundle: s.Bundle, Workspace: s.Workspace, Member: s.Member}
}

// unreadable says of a Secret that no release can be read out of it, and what to do.
func unreadable(secret *corev1.Secret, err error) error {
	return fmt.Errorf("secret %s/%s holds no release that Helm could read: %w: restore it, or delete it", secret.Namespace, secret.Name, err)
}

// decode reads the release in a Secret of Helm's.
func decode(secret *corev1.Secret, into any) error {
	wrap := func(err error) error { return unreadable(secret, err) }
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		return wrap(err)
	}
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return wrap(err)
		}
		if packed, err = io.ReadAll(reader); err != nil {
			return wrap(err)
		}
	}
	if err := json.Unmarshal(packed, into); err != nil {
		return wrap(err)
	}
	return nil
}
