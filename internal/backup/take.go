package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/version"
)

// page limits the number of objects in memory.
const page = 100

// Options are the settings of a backup.
type Options struct {
	Recipients []age.Recipient
	// WithoutSecrets leaves all Secrets out.
	WithoutSecrets bool
	// SecretsFrom lists the namespaces with Secrets to include; empty for all workspaces.
	SecretsFrom []string
	// Progress prints a completed step; may be nil.
	Progress func(text string)
}

// Count is the number and the size of the objects of one kind in a backup.
type Count struct {
	Kind    string
	Objects int
	// Bytes is the size before compression.
	Bytes int
}

// Summary describes a written file.
type Summary struct {
	Header
	Counts []Count
	// NotServed lists the kinds missing on the cluster, such as placements without their definitions.
	NotServed []string
	// Note is a sentence about a limit of the storage; empty for none.
	Note string
}

// Objects returns the number of all objects.
func (s Summary) Objects() (objects int) {
	for _, c := range s.Counts {
		objects += c.Objects
	}
	return objects
}

// Bytes returns the size of all objects before compression.
func (s Summary) Bytes() (size int) {
	for _, c := range s.Counts {
		size += c.Bytes
	}
	return size
}

// taking is one run of a backup.
type taking struct {
	Options
	hub     dynamic.Interface
	file    *writer
	summary Summary
	// namespaces are all namespaces; workspaces are the namespaces of objects in the file.
	namespaces, workspaces map[string]bool
	// accounts holds the identities of MemberClusters, by namespace and name. kubeconfigs holds the
	// Secrets of Clusters in other namespaces, by namespace and name.
	accounts, kubeconfigs map[string]map[string]bool
	// forbidden lists missing rights to Secrets.
	forbidden []string
}

// Take writes a backup of the hub. It checks its rights to all kinds before it writes anything.
func Take(ctx context.Context, config *rest.Config, o Options, out io.Writer) (Summary, error) {
	hub, err := dynamic.NewForConfig(unlimited(config))
	if err != nil {
		return Summary{}, fmt.Errorf("connecting to the hub: %w", err)
	}
	t := &taking{
		Options: o, hub: hub, namespaces: map[string]bool{}, workspaces: map[string]bool{},
		accounts: map[string]map[string]bool{}, kubeconfigs: map[string]map[string]bool{},
	}
	if err := t.look(ctx); err != nil {
		return t.summary, err
	}
	if t.summary.Hub, err = t.identity(ctx); err != nil {
		return t.summary, err
	}
	if t.file, err = newWriter(out, t.summary.Header, o.Recipients...); err != nil {
		return t.summary, err
	}
	for _, step := range []func(context.Context) error{t.ofFleet, t.ofNamespaces, t.ofAccounts, t.ofSecrets} {
		if err := step(ctx); err != nil {
			return t.summary, err
		}
	}
	return t.summary, t.file.close()
}

// look lists one object of each kind. It determines the resource version of the backup, the served
// kinds, and all missing rights at once.
func (t *taking) look(ctx context.Context) error {
	system, err := t.hub.Resource(namespaces).Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the namespace kube-system, the identity of the hub's cluster: %w", err)
	}
	t.summary.Header = Header{
		Format: format, ID: string(uuid.NewUUID()), Version: version.Version, Taken: time.Now().UTC().Truncate(time.Second),
		Cluster: string(system.GetUID()), Secrets: !t.WithoutSecrets,
	}
	var forbidden []string
	for _, kind := range append([]schema.GroupVersionResource{clusters, namespaces, accounts}, kinds()...) {
		one, err := t.hub.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case err == nil && t.summary.ResourceVersion == "":
			t.summary.ResourceVersion = one.GetResourceVersion()
		case kube.NotServed(err) && kind == clusters:
			return errors.New("the cluster serves no fleet: it is not a hub; install the hub with muster init")
		case kube.NotServed(err):
			t.summary.NotServed = append(t.summary.NotServed, kind.GroupResource().String())
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, kind.GroupResource().String())
		case err != nil:
			return fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
		}
	}
	return missing(forbidden, "")
}

// missing returns an error with all missing rights; nil if there are none.
func missing(forbidden []string, remedy string) error {
	if len(forbidden) == 0 {
		return nil
	}
	forbidden = slices.Compact(slices.Sorted(slices.Values(forbidden)))
	return fmt.Errorf("you may not list %s, as needed for a complete backup: use the credential of an administrator%s",
		strings.Join(forbidden, ", "), remedy)
}

// ofFleet writes the objects of the fleet.
func (t *taking) ofFleet(ctx context.Context) error {
	for _, kind := range kinds() {
		if slices.Contains(t.summary.NotServed, kind.GroupResource().String()) {
			continue
		}
		err := t.each(ctx, kind, "", func(o *unstructured.Unstructured) bool {
			if o.GetNamespace() != "" && kind != reports {
				t.workspaces[o.GetNamespace()] = true
			}
			t.noteReferences(kind, o)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// noteReferences notes the account or the Secret in the spec of a member.
func (t *taking) noteReferences(kind schema.GroupVersionResource, o *unstructured.Unstructured) {
	text := func(field ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, field...)
		return value
	}
	note := func(to map[string]map[string]bool, namespace, name string) {
		if to[namespace] == nil {
			to[namespace] = map[string]bool{}
		}
		to[namespace][name] = true
	}
	switch kind {
	case members:
		if text("spec", "identity", "kind") == "ServiceAccount" {
			note(t.accounts, text("spec", "identity", "namespace"), text("spec", "identity", "name"))
		}
	case clusters:
		if namespace := text("spec", "kubeConfigSecretNamespace"); namespace != "" {
			note(t.kubeconfigs, namespace, text("spec", "kubeConfigSecret"))
		}
	}
}

// ofNamespaces writes the workspaces, and the namespaces of identities.
func (t *taking) ofNamespaces(ctx context.Context) error {
	return t.each(ctx, namespaces, "", func(o *unstructured.Unstructured) bool {
		t.namespaces[o.GetName()] = true
		return !isMemberNamespace(o) && (t.workspaces[o.GetName()] || t.accounts[o.GetName()] != nil ||
			t.kubeconfigs[o.GetName()] != nil || slices.Contains(t.SecretsFrom, o.GetName()))
	})
}

func (t *taking) ofAccounts(ctx context.Context) error {
	for _, namespace := range slices.Sorted(maps.Keys(t.accounts)) {
		named := t.accounts[namespace]
		if err := t.each(ctx, accounts, namespace, func(o *unstructured.Unstructured) bool { return named[o.GetName()] }); err != nil {
			return err
		}
	}
	return nil
}

// ofSecrets writes the users' Secrets in workspaces, and the kubeconfigs of Clusters.
func (t *taking) ofSecrets(ctx context.Context) error {
	if t.WithoutSecrets {
		return nil
	}
	from := slices.Sorted(maps.Keys(t.workspaces))
	if len(t.SecretsFrom) > 0 {
		from = slices.Compact(slices.Sorted(slices.Values(t.SecretsFrom)))
	} else {
		from = append(from, slices.Sorted(maps.Keys(t.kubeconfigs))...)
	}
	forbidden := t.forbidden
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(from))) {
		if !t.namespaces[namespace] && !slices.Contains(t.SecretsFrom, namespace) {
			continue
		}
		if !t.namespaces[namespace] {
			return fmt.Errorf("the hub has no namespace %s, whose Secrets the backup should have: correct its name, or create it", namespace)
		}
		named, whole := t.kubeconfigs[namespace], t.workspaces[namespace] || slices.Contains(t.SecretsFrom, namespace)
		err := t.each(ctx, secrets, namespace, func(o *unstructured.Unstructured) bool { return whole || named[o.GetName()] })
		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, "secrets in namespace "+namespace)
		case err != nil:
			return err
		}
	}
	return missing(forbidden, ", or leave Secrets out with --without-secrets")
}

// each writes the objects of a kind at the backup's resource version, page by page.
func (t *taking) each(ctx context.Context, kind schema.GroupVersionResource, namespace string,
	selects func(*unstructured.Unstructured) bool) error {
	count := Count{Kind: kind.GroupResource().String()}
	if last := len(t.summary.Counts) - 1; last >= 0 && t.summary.Counts[last].Kind == count.Kind {
		count, t.summary.Counts = t.summary.Counts[last], t.summary.Counts[:last]
	}
	options := metav1.ListOptions{
		Limit: page, ResourceVersion: t.summary.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	for {
		list, err := t.hub.Resource(kind).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsResourceExpired(err):
			return fmt.Errorf("reading %s: the hub's API server has dropped the moment of the backup, because it took longer than the server "+
				"keeps its history: run the command again: %w", count.Kind, err)
		case err != nil:
			return fmt.Errorf("reading %s: %w", count.Kind, err)
		case options.Continue == "" && list.GetResourceVersion() != t.summary.ResourceVersion:
			return fmt.Errorf("reading %s: the hub's API server answered from version %s instead of %s, so the backup would mix two moments",
				count.Kind, list.GetResourceVersion(), t.summary.ResourceVersion)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if isOfHub(kind, o) || !selects(o) {
				continue
			}
			o.SetManagedFields(nil)
			size, err := t.file.object(o)
			if err != nil {
				return err
			}
			count.Objects, count.Bytes = count.Objects+1, count.Bytes+size
		}
		if list.GetContinue() == "" {
			break
		}
		options = metav1.ListOptions{Limit: page, Continue: list.GetContinue()}
	}
	if count.Objects > 0 {
		t.summary.Counts = append(t.summary.Counts, count)
	}
	if t.Progress != nil {
		t.Progress(fmt.Sprintf("%d %s", count.Objects, count.Kind))
	}
	return nil
}
