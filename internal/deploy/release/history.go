package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// annotationMovedFrom names the releases that this one takes the place of, until they are removed.
	annotationMovedFrom = "muster/moved-from"
)

const (
	// OwnedByHelm selects the Secrets in which Helm keeps releases.
	OwnedByHelm = "owner=helm"
	// page is how many histories are in memory at a time while they are read through.
	page = 20
)

// ID is which release: two of one name in two namespaces are two.
type ID struct{ Namespace, Name string }

// String is the release for messages.
func (i ID) String() string { return i.Namespace + "/" + i.Name }

// Summary is what is known of a release without its manifest.
type Summary struct {
	// Name and Namespace of the release, Version its newest revision, DeployedAt when that was made.
	Name, Namespace string
	Version         int
	DeployedAt      time.Time
	// History is the namespace in which its history is: its own, or that of the agent, where earlier versions kept it. Copied says that it was
	// brought there from elsewhere, Renamed that the objects still bear the name that it had there.
	History         string
	Copied, Renamed bool
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
	// HubUID and HubVersion are the UID and the resource version that its BundleDeployment had when it was deployed; an earlier version of the agent
	// noted no UID. HubRestored says that the hub was restored from an earlier state since, which does not know that.
	HubUID, HubVersion string
	HubRestored        bool
	// Compared is the note of which objects were found unmodified; empty if there is none.
	Compared string
	// Agent says that it is the release of the agent itself.
	Agent bool
	// Leaves names the releases that it takes the place of, with spaces between them.
	Leaves string
}

// ID is which release it is.
func (s Summary) ID() ID { return ID{Namespace: s.Namespace, Name: s.Name} }

// movedFrom says whether the release takes the place of another one.
func (s Summary) movedFrom(other ID) bool {
	return slices.Contains(strings.Fields(s.Leaves), other.String())
}

// SupersededBy says whether the release was to go for another one, and was not deployed again since.
func (s Summary) SupersededBy(other Summary) bool {
	return other.movedFrom(s.ID()) && (!s.movedFrom(other.ID()) || other.DeployedAt.After(s.DeployedAt))
}

// String is the release as status shows it.
func (s Summary) String() string { return fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Version) }

// stored is what is read of a history.
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
	// member, hubUID, hubVersion, hubRestored and renamed are those of the Secret's labels, history its namespace; copied says that it is a copy of another.
	member, hubUID, hubVersion, history string
	// compared is the note beside the release.
	compared                     string
	hubRestored, renamed, copied bool
}

// deployedAt is when the revision was made; zero if it does not say.
func (s stored) deployedAt() time.Time {
	at, err := time.Parse(time.RFC3339Nano, s.Info.LastDeployed)
	if err != nil {
		return time.Time{}
	}
	return at
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
		Agent:           adopted,
		Leaves:          annotations[annotationMovedFrom],
	}, true
}

// Objects are those of the revision, as they were rendered.
func (c *Cluster) Objects(ctx context.Context, s Summary) ([]*unstructured.Unstructured, error) {
	secret, err := c.Kube.CoreV1().Secrets(s.History).Get(ctx, SecretName(s), metav1.GetOptions{})
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
func SecretName(s Summary) string { return secretName(s.Name, s.Version) }

func secretName(release string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
}

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
	text, err := unpack(secret.Data["release"])
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return unreadable(secret, err)
	}
	return nil
}

// unpack returns the JSON of a release as Helm stores it.
func unpack(data []byte) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		return packed, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
