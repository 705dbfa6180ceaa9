package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
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
	annotationDeploymentID    = "muster/deployment-id"
	annotationSyncGeneration  = "muster/sync-generation"
	annotationDeleteNamespace = "muster/delete-namespace"
)

const (
	ownedByHelm = "owner=helm"
	// page is how many histories are held at a time while they are looked through.
	page = 20
)

// Summary is what is known of a release without its manifest.
type Summary struct {
	// Name and Namespace of the release, Version its newest revision.
	Name, Namespace string
	Version         int
	// Deployed says that the newest revision was carried out, Broken that an operation on it was cut off, Uninstalled that only its history
	// is left.
	Deployed, Broken, Uninstalled bool
	// Bundle is the name of the BundleDeployment.
	Bundle string
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
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"chart"`
}

// List finds the releases that an agent of this namespace delivered, by the name of the BundleDeployment.
func (c *Cluster) List(ctx context.Context) (map[string]Summary, error) {
	found := map[string]Summary{}
	options := metav1.ListOptions{LabelSelector: ownedByHelm, Limit: page}
	for {
		list, err := c.Kube.CoreV1().Secrets(c.AgentNamespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the releases in namespace %s: %w", c.AgentNamespace, err)
		}
		for i := range list.Items {
			summary, ok, err := c.summarize(&list.Items[i])
			if err != nil {
				return nil, err
			}
			if ok && found[summary.Bundle].Version < summary.Version {
				found[summary.Bundle] = summary
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

func (c *Cluster) summarize(secret *corev1.Secret) (Summary, bool, error) {
	var s stored
	if err := decode(secret, &s); err != nil {
		return Summary{}, false, err
	}
	annotations := s.Chart.Metadata.Annotations
	if annotations[annotationBundle] == "" || annotations[annotationAgentNamespace] != c.AgentNamespace {
		return Summary{}, false, nil
	}
	_, adopted := annotations[annotationOwnValues]
	generation, err := strconv.ParseInt(annotations[annotationSyncGeneration], 10, 64)
	if err != nil {
		generation = 0
	}
	return Summary{
		Name: s.Name, Namespace: s.Namespace, Version: s.Version,
		Deployed:        s.Info.Status == common.StatusDeployed,
		Broken:          s.Info.Status.IsPending() || s.Info.Status == common.StatusUninstalling,
		Uninstalled:     s.Info.Status == common.StatusUninstalled,
		Bundle:          annotations[annotationBundle],
		DeploymentID:    annotations[annotationDeploymentID],
		SyncGeneration:  generation,
		KeepResources:   annotations[annotationKeepResources] == strconv.FormatBool(true),
		DeleteNamespace: annotations[annotationDeleteNamespace] == strconv.FormatBool(true),
		ServiceAccount:  annotations[annotationServiceAccount],
		Member:          secret.Labels[naming.LabelMember],
		HubVersion:      secret.Labels[labelHubVersion],
		HubRestored:     secret.Labels[labelHubRestored] != "",
		Agent:           adopted,
	}, true, nil
}

// Objects are those of the revision, as they were rendered.
func (c *Cluster) Objects(ctx context.Context, s Summary) ([]*unstructured.Unstructured, error) {
	secret, err := c.Kube.CoreV1().Secrets(c.AgentNamespace).Get(ctx, secretName(s), metav1.GetOptions{})
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

func secretName(s Summary) string { return fmt.Sprintf("sh.helm.release.v1.%s.v%d", s.Name, s.Version) }

// decode reads the release in a Secret of Helm's.
func decode(secret *corev1.Secret, into any) error {
	wrap := func(err error) error {
		return fmt.Errorf("secret %s/%s holds no release that Helm could read: %w", secret.Namespace, secret.Name, err)
	}
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
