package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// annotationOwnValues is the annotation for the user's values in the agent's own release, without
	// the hub's.
	annotationOwnValues = "muster/own-values"
	// helmManager is the field manager of Helm's command and of the hub's importer. Both also upgrade
	// the agent's own release. The agent must therefore not own fields there that Helm and the
	// importer could not change or remove.
	helmManager = "helm"
	// longOperation is the time until an operation of Helm's command counts as cut off. By default
	// Helm gives up after five minutes.
	longOperation = 10 * time.Minute
)

// ErrBusy reports a user's Helm command at work on a release.
var ErrBusy = errors.New("waiting for Helm's command to end")

// Overtaken reports whether another client, such as a user's Helm command, has made a newer
// revision of a release.
func (c *Cluster) Overtaken(ctx context.Context, s Summary) (bool, error) {
	list, err := c.Kube.CoreV1().Secrets(s.History).List(ctx, metav1.ListOptions{LabelSelector: ofRelease(s.Name)})
	if err != nil {
		return false, fmt.Errorf("reading the history of release %s: %w", s, err)
	}
	return slices.ContainsFunc(list.Items, func(secret corev1.Secret) bool {
		version, err := strconv.Atoi(secret.Labels["version"])
		return err == nil && version > s.Version
	}), nil
}

// adopt merges the values of a request over the user's values in the agent's own release. The user
// installed it and may have upgraded it since. Values merged by the hub before are not the user's.
// An agent without a release keeps the settings in its ConfigMap, above all the ID of its cluster.
//
// adopt refuses a release of another chart with the same name, such as Rancher Fleet's.
func (c *Cluster) adopt(ctx context.Context, configuration *action.Configuration, r Request) (Request, error) {
	history, err := revisions(configuration, r.Release)
	if err != nil {
		return r, err
	}
	if len(history) > 0 {
		newest := history[len(history)-1].Chart.Metadata
		switch {
		case newest.Annotations[annotationBundle] == r.Bundle:
		case newest.Name != c.Agent.Chart:
			return r, fmt.Errorf("release %s is not the agent's, but of chart %s: uninstall it, or give it another name", r.Release, newest.Name)
		case newest.Home != r.Chart.Metadata.Home:
			return r, fmt.Errorf("release %s is of another chart %s by now, version %s: the agent of that one takes over, and its release is left "+
				"alone; to keep this agent, roll the release back", r.Release, newest.Name, newest.Version)
		}
	}
	if err := busy(history, time.Now()); err != nil {
		return r, err
	}
	own, managed, err := c.settings(ctx, r, history)
	if err != nil {
		return r, err
	}
	values, err := json.Marshal(own)
	if err != nil {
		return r, fmt.Errorf("encoding the values of release %s: %w", r.Release, err)
	}
	r.Values = loader.MergeMaps(loader.MergeMaps(own, r.Values), managed)
	r.Chart.Metadata.Annotations[annotationOwnValues] = string(values)
	return r, nil
}

// settings returns the user's values of the agent's own release, and the values to tell the chart
// about the hub's management. Only the release of a Cluster's agent may have no history.
func (c *Cluster) settings(ctx context.Context, r Request, history []*helm.Release) (own, managed map[string]any, err error) {
	if own, err = ownValues(history); err != nil {
		return nil, nil, fmt.Errorf("reading the values of release %s: %w", r.Release, err)
	}
	switch chart := r.Chart.Metadata.Name; {
	case c.Agent.Chart == agentRelease && len(history) == 0:
		if own, err = c.configured(ctx, r.Namespace); err != nil {
			return nil, nil, err
		}
	case c.Agent.Chart == agentRelease:
	case chart != c.Agent.Chart:
		return nil, nil, fmt.Errorf("the hub sent chart %s, and the chart of this agent is %s: nothing is changed", chart, c.Agent.Chart)
	case len(history) == 0:
		return nil, nil, fmt.Errorf("release %s has no history, which alone has the settings of this agent: install it with Helm",
			r.Release)
	default:
		return own, nil, nil
	}
	return own, map[string]any{"internal": map[string]any{"joinedWith": digestOfToken(own)}}, nil
}

// configured returns the settings in the agent's ConfigMap as values of its chart.
func (c *Cluster) configured(ctx context.Context, namespace string) (map[string]any, error) {
	values := map[string]any{}
	configMap, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, naming.AgentConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return values, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the settings of the agent: %w", err)
	}
	var settings map[string]any
	if text := strings.TrimSpace(configMap.Data["config"]); text != "" {
		if err := json.Unmarshal([]byte(text), &settings); err != nil {
			return nil, fmt.Errorf("reading the settings of the agent in ConfigMap %s/%s: key config is no JSON object", namespace, configMap.Name)
		}
	}
	for _, key := range []string{"clientID", "labels", "agentTLSMode", "garbageCollectionInterval"} {
		if value, set := settings[key]; set {
			values[key] = value
		}
	}
	return values, nil
}

// busy returns an error while a user's Helm command works on the release. The Helm command may be
// waiting for this agent to become ready.
func busy(history []*helm.Release, now time.Time) error {
	if len(history) == 0 {
		return nil
	}
	last := history[len(history)-1]
	status := last.Info.Status
	began := last.Info.LastDeployed
	ours := status != common.StatusPendingRollback && last.Chart.Metadata.Annotations[annotationBundle] != ""
	if status == common.StatusUninstalling { // the deployer never uninstalls its agent
		began, ours = last.Info.Deleted, false
	}
	if ours || !status.IsPending() && status != common.StatusUninstalling || now.Sub(began) > longOperation {
		return nil
	}
	return fmt.Errorf("release %s is %s: %w, at most until %s", last.Name, status, ErrBusy,
		began.Add(longOperation).UTC().Format(time.RFC3339))
}

// digestOfToken returns the digest of the agent's registration token, as its chart expects.
func digestOfToken(own map[string]any) string {
	token, _ := own["token"].(string) // empty if the hub itself installed the agent
	return naming.Digest(strings.TrimSpace(token))
}

// revisions returns the revisions of a release, the oldest first.
func revisions(configuration *action.Configuration, name string) ([]*helm.Release, error) {
	found, err := configuration.Releases.History(name)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, fmt.Errorf("reading the history of release %s: %w", name, err)
	}
	var history []*helm.Release
	for _, entry := range found {
		revision, ok := entry.(*helm.Release)
		if !ok {
			return nil, fmt.Errorf("the history of release %s is of an unknown version: %T", name, entry)
		}
		history = append(history, revision)
	}
	slices.SortFunc(history, func(a, b *helm.Release) int { return cmp.Compare(a.Version, b.Version) })
	return history, nil
}

// uninstalled reports whether only the history of a release is left.
func uninstalled(history []*helm.Release) bool {
	return history[len(history)-1].Info.Status == common.StatusUninstalled
}

// ownValues returns the user's values in the newest deployed revision.
func ownValues(history []*helm.Release) (map[string]any, error) {
	newest := len(history) - 1
	for i := newest; i >= 0; i-- {
		if history[i].Info.Status == common.StatusDeployed {
			newest = i
			break
		}
	}
	if newest < 0 {
		return map[string]any{}, nil
	}
	for i := newest; i >= 0; i-- {
		text, adopted := history[i].Chart.Metadata.Annotations[annotationOwnValues]
		if !adopted {
			continue
		}
		own := map[string]any{}
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			return nil, fmt.Errorf("annotation %s of revision %d: %w", annotationOwnValues, history[i].Version, err)
		}
		if i == newest {
			return own, nil
		}
		return subtract(history[newest].Config, history[i].Config, own), nil
	}
	return loader.MergeMaps(map[string]any{}, history[newest].Config), nil
}

// subtract removes unchanged values merged over the user's own before, because Helm's
// --reuse-values keeps them all.
func subtract(values, laid, own map[string]any) map[string]any {
	rest := map[string]any{}
	for key, value := range values {
		before, wasLaid := laid[key]
		ownValue, wasOwn := own[key]
		inside, isMap := value.(map[string]any)
		insideBefore, wasMap := before.(map[string]any)
		switch {
		case isMap && wasMap:
			ownInside, _ := ownValue.(map[string]any) // nil if the user set none of it
			if left := subtract(inside, insideBefore, ownInside); len(left) > 0 || wasOwn {
				rest[key] = left
			}
		case !wasLaid || !reflect.DeepEqual(value, before):
			rest[key] = value
		case wasOwn:
			rest[key] = ownValue
		}
	}
	return rest
}

// Disown leaves the release of the agent to the user, with all its revisions.
func (c *Cluster) Disown(s Summary, o Owner) error {
	free, err := c.names.take(s.ID(), o.Bundle)
	if err != nil {
		return err
	}
	defer free()
	configuration := c.configuration(c, s.Namespace, s.History, 0)
	history, err := revisions(configuration, s.Name)
	if err != nil {
		return err
	}
	for _, revision := range history {
		annotations := revision.Chart.Metadata.Annotations
		if annotations[annotationBundle] != o.Bundle || annotations[annotationAgentNamespace] != c.AgentNamespace {
			continue
		}
		for _, key := range []string{annotationBundle, annotationAgentNamespace, annotationWorkspace, annotationDeploymentID} {
			delete(annotations, key)
		}
		if err := configuration.Releases.Update(revision); err != nil {
			return fmt.Errorf("leaving revision %d of release %s to the user: %w", revision.Version, s, err)
		}
	}
	return nil
}

// asHelm returns the cluster with the field manager of Helm's command, for the agent's own release
// as long as it is installed.
func (c *Cluster) asHelm(release *installed) (*Cluster, error) {
	as := *c
	as.installed = release
	as.accounts = newAccounts() // the accounts of c have its field manager
	as.config = rest.CopyConfig(c.config)
	as.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return asHelmManager{whileInstalled{next, release}} })
	client, err := rest.HTTPClientFor(as.config)
	if err != nil {
		return nil, fmt.Errorf("preparing to write as Helm's command does: %w", err)
	}
	return &as, as.clients(client)
}

// asHelmManager replaces the field manager of requests, because Helm has one for the whole program.
type asHelmManager struct{ next http.RoundTripper }

func (m asHelmManager) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("fieldManager") == FieldManager {
		request = request.Clone(request.Context())
		query.Set("fieldManager", helmManager)
		request.URL.RawQuery = query.Encode()
	}
	return m.next.RoundTrip(request)
}
