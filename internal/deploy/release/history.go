package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
)

// Annotations of the chart of a release; the ones of fleet.cattle.io are upstream's.
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
	// annotationMovedFrom names the replaced releases, until they are removed.
	annotationMovedFrom = "muster/moved-from"
	// annotationJobs is the note of the runs of Jobs before the deployment of the revision.
	annotationJobs = "muster/jobs"
	// annotationCRDs is the note of the definitions in crds/ of the chart, for a comparison with the
	// member.
	annotationCRDs = "muster/crds"
	// annotationRepeated names the objects with several manifests.
	annotationRepeated = "muster/repeated"
)

const (
	// OwnedByHelm selects Helm's Secrets with releases.
	OwnedByHelm = "owner=helm"
	// page is the number of histories in memory at a time.
	page = 20
	// maxHistory is the maximum number of bytes of an unpacked history. Its Secret has at most 1 MiB.
	maxHistory = 32 << 20
)

// ID identifies a release by namespace and name.
type ID struct{ Namespace, Name string }

// String formats the release for messages.
func (i ID) String() string { return i.Namespace + "/" + i.Name }

// Summary is the state of a release without its manifest.
type Summary struct {
	// Name and Namespace identify the release, Version is its newest revision, DeployedAt the time of
	// that revision.
	Name, Namespace string
	Version         int
	DeployedAt      time.Time
	// History is the namespace of its history: its own, or the agent's with earlier versions. Copied
	// is set if the history was copied there from elsewhere. Renamed is set if the objects still have
	// the name of the release there.
	History         string
	Copied, Renamed bool
	// Deployed is set if the newest revision was carried out.
	Deployed bool
	// Bundle is the name of the BundleDeployment, Workspace the namespace of its Bundle on the hub.
	// Workspace is empty for releases of upstream agents or earlier versions.
	Bundle, Workspace string
	// DeploymentID is empty for releases of upstream agents.
	DeploymentID   string
	SyncGeneration int64
	// KeepResources, DeleteNamespace and ServiceAccount are the options for the time after the
	// BundleDeployment.
	KeepResources, DeleteNamespace bool
	ServiceAccount                 string
	// Member is empty for releases of upstream agents, and for the agent's own.
	Member string
	// HubUID and HubVersion are the UID and resource version of its BundleDeployment at the
	// deployment; earlier agents noted no UID. HubRestored is set if the hub was restored since from
	// an earlier state, without this BundleDeployment.
	HubUID, HubVersion string
	HubRestored        bool
	// Compared is the note of unmodified objects; empty if there is none.
	Compared string
	// Jobs is the note of the runs of its Jobs; empty if there is none.
	Jobs string
	// CRDs is the note of the definitions in crds/ of its chart; empty if there is none.
	CRDs string
	// Repeated names the objects with several manifests; only the last one of each is deployed.
	Repeated string
	// Agent is set for the agent's own release.
	Agent bool
	// Leaves names the replaced releases, separated by spaces.
	Leaves string
}

// ID identifies the release.
func (s Summary) ID() ID { return ID{Namespace: s.Namespace, Name: s.Name} }

// movedFrom reports whether the release replaces another one.
func (s Summary) movedFrom(other ID) bool {
	return slices.Contains(strings.Fields(s.Leaves), other.String())
}

// SupersededBy reports whether another release was to replace this one, and this one was not
// deployed again since.
func (s Summary) SupersededBy(other Summary) bool {
	return other.movedFrom(s.ID()) && (!s.movedFrom(other.ID()) || other.DeployedAt.After(s.DeployedAt))
}

// String formats the release as in the status.
func (s Summary) String() string { return fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Version) }

// stored is the part of a history to read.
type stored struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Info      struct {
		Status       common.Status `json:"status"`
		LastDeployed string        `json:"last_deployed"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"chart"`
	// member, hubUID, hubVersion, hubRestored and renamed come from the labels of the Secret. history
	// is its namespace; copied is set for a copy of another Secret.
	member, hubUID, hubVersion, history string
	// compared is the note beside the release.
	compared string
	// jobs is the note of the runs beside the release.
	jobs                         string
	hubRestored, renamed, copied bool
}

// deployedAt returns the time of the revision; zero if unknown.
func (s stored) deployedAt() time.Time {
	at, err := time.Parse(time.RFC3339Nano, s.Info.LastDeployed)
	if err != nil {
		return time.Time{}
	}
	return at
}

// summarize returns the summary of a revision, if an agent of this namespace made it.
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
		Name: s.Name, Namespace: s.Namespace, Version: s.Version, DeployedAt: s.deployedAt(),
		History: s.history, Copied: s.copied, Renamed: s.renamed,
		Deployed:        s.Info.Status == common.StatusDeployed,
		Bundle:          annotations[annotationBundle],
		Workspace:       annotations[annotationWorkspace],
		DeploymentID:    annotations[annotationDeploymentID],
		SyncGeneration:  generation,
		KeepResources:   annotations[annotationKeepResources] == strconv.FormatBool(true),
		DeleteNamespace: annotations[annotationDeleteNamespace] == strconv.FormatBool(true),
		ServiceAccount:  annotations[annotationServiceAccount],
		Member:          s.member,
		HubUID:          s.hubUID,
		HubVersion:      s.hubVersion,
		HubRestored:     s.hubRestored,
		Compared:        s.compared,
		Jobs:            cmp.Or(s.jobs, annotations[annotationJobs]),
		CRDs:            annotations[annotationCRDs],
		Repeated:        annotations[annotationRepeated],
		Agent:           adopted,
		Leaves:          annotations[annotationMovedFrom],
	}, true
}

// Objects returns the rendered objects of the revision.
func (c *Cluster) Objects(ctx context.Context, s Summary) ([]*unstructured.Unstructured, error) {
	secret, err := c.Kube.CoreV1().Secrets(s.History).Get(ctx, SecretName(s), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the history of release %s: %w", s, err)
	}
	var revision struct {
		Manifest string `json:"manifest"`
	}
	if err := decode(secret, &revision); err != nil {
		return nil, err
	}
	objects, err := parse([]byte(revision.Manifest))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of release %s: %w", s, err)
	}
	for _, object := range objects {
		manifest.Normalize(object) // an earlier version stored it as the author wrote it
	}
	return objects, nil
}

// SecretName returns the name of Helm's Secret with a revision.
func SecretName(s Summary) string { return secretName(s.Name, s.Version) }

func secretName(release string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
}

// Owner returns the owner of a release.
func (s Summary) Owner() Owner {
	return Owner{Bundle: s.Bundle, Workspace: s.Workspace, Member: s.Member}
}

// unreadable returns an error for a Secret without a readable release, with the remedy.
func unreadable(secret *corev1.Secret, err error) error {
	return fmt.Errorf("secret %s/%s holds no release that Helm could read: %w: restore it, or delete it", secret.Namespace, secret.Name, err)
}

// decode reads the release in a Secret of Helm's.
func decode(secret *corev1.Secret, into any) error {
	text, err := unpack(secret.Data["release"])
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return unreadable(secret, err)
	}
	return nil
}

// unpack returns the JSON of a release in Helm's storage. A user with the right to write Secrets on
// the member may label any Secret as a history: it must not fill the memory.
func unpack(data []byte) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		return packed, err
	}
	return delivery.Gunzip(packed, maxHistory)
}
