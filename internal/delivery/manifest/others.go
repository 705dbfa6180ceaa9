package manifest

import (
	"encoding/base64"
	"encoding/pem"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const admissionGroup = "admissionregistration.k8s.io"

// Kinds with certificates filled in by an injector.
var (
	webhookKinds = []schema.GroupKind{
		{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"}, {Group: admissionGroup, Kind: "MutatingWebhookConfiguration"},
	}
	serviceKinds    = []schema.GroupKind{{Group: "apiregistration.k8s.io", Kind: "APIService"}}
	conversionKinds = []schema.GroupKind{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}}
	certified       = slices.Concat(webhookKinds, serviceKinds, conversionKinds)
)

// Row is a field owned by another program by design. Muster does not count it as drift and does not
// overwrite it.
type Row struct {
	// Kind, Field, When and Owner are from the documentation.
	Kind, Field, When, Owner string
	// kinds are the kinds with the field; none stands for all.
	kinds []schema.GroupKind
	// paths returns the fields of others in a manifest; found is the object on the member or nil.
	paths func(wanted, found map[string]any) []path
	// always is set if the field belongs to others before the object exists. The manifest is
	// applied without it.
	always bool
	// compared is set if only the comparison leaves the field out.
	compared bool
}

// Rows is the table of the fields of others. Replicas have rules of their own, see
// Bounds.
var Rows = []Row{
	// Source: kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale, "Migrating
	// Deployments and StatefulSets to horizontal autoscaling". KEDA creates one too.
	{
		Kind: "any with `spec.replicas`", Field: "`spec.replicas`", Owner: "the autoscaler",
		When: "a HorizontalPodAutoscaler targets the object and the number is within its bounds",
	},
	// Source: kubernetes.io/docs/reference/access-authn-authz/rbac, "Aggregated ClusterRoles": the
	// control plane overwrites the rules.
	{
		Kind: "ClusterRole", Field: "`rules`", When: "it has an `aggregationRule`", Owner: "Kubernetes",
		kinds: []schema.GroupKind{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}}, paths: aggregatedRules, always: true,
	},
	// Source: cert-manager.io/docs/concepts/ca-injector, with these four kinds. Controllers with
	// certificates of their own do the same.
	{
		Kind: "ValidatingWebhookConfiguration, MutatingWebhookConfiguration", Field: "`webhooks[*].clientConfig.caBundle`",
		When: caBundleWhen, Owner: "an injector of certificates",
		kinds: webhookKinds,
		paths: webhookBundles,
	},
	{
		Kind: "APIService", Field: "`spec.caBundle`", When: caBundleWhen, Owner: "an injector of certificates",
		kinds: serviceKinds,
		paths: placeholderAt(path{"spec", "caBundle"}),
	},
	{
		Kind: "CustomResourceDefinition", Field: "`spec.conversion.webhook.clientConfig.caBundle`", When: caBundleWhen,
		Owner: "an injector of certificates", kinds: conversionKinds,
		paths: placeholderAt(path{"spec", "conversion", "webhook", "clientConfig", "caBundle"}),
	},
	// Source: k8s.io/kubectl/pkg/util/deployment, RevisionAnnotation.
	{
		Kind: "Deployment", Field: "annotation `deployment.kubernetes.io/revision`", When: "always", Owner: "Kubernetes",
		kinds: []schema.GroupKind{{Group: "apps", Kind: "Deployment"}}, always: true,
		paths: at(path{"metadata", "annotations", "deployment.kubernetes.io/revision"}),
	},
	// Source: kubernetes.io/docs/concepts/overview/working-with-objects/finalizers. The controller
	// of a finalizer removes it.
	{
		Kind: "any", Field: "`metadata.finalizers`", When: "always", Owner: "controllers", compared: true,
		paths: at(path{"metadata", "finalizers"}),
	},
	// Source: the API conventions of Kubernetes, "Spec and Status".
	{
		Kind: "any", Field: "`status`", When: "always", Owner: "controllers", compared: true, paths: at(path{"status"}),
	},
}

const caBundleWhen = "the manifest has none or a placeholder, and the member has a certificate"

func (r Row) concerns(kind schema.GroupKind) bool {
	return r.paths != nil && (len(r.kinds) == 0 || slices.Contains(r.kinds, kind))
}

func at(p path) func(wanted, found map[string]any) []path {
	return func(map[string]any, map[string]any) []path { return []path{p} }
}

func aggregatedRules(wanted, _ map[string]any) []path {
	if wanted["aggregationRule"] == nil {
		return nil
	}
	return []path{{"rules"}}
}

// webhookBundles returns the open certificates of webhooks.
func webhookBundles(wanted, found map[string]any) (open []path) {
	webhooks, _ := wanted["webhooks"].([]any)
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		if name, ok := fields["name"].(string); ok {
			open = append(open, placeholderAt(path{"webhooks", entry{"name": name}, "clientConfig", "caBundle"})(wanted, found)...)
		}
	}
	return open
}

// placeholderAt returns a path if the manifest has no certificate there and the object has one.
func placeholderAt(p path) func(wanted, found map[string]any) []path {
	return func(wanted, found map[string]any) []path {
		_, has := p[:len(p)-1].get(wanted)
		value, _ := p.get(wanted)
		if is, _ := p.get(found); has && !IsCertificate(value) && IsCertificate(is) {
			return []path{p}
		}
		return nil
	}
}

// IsCertificate reports whether a value is a certificate as PEM in base64. A placeholder is any
// other text.
func IsCertificate(value any) bool {
	text, _ := value.(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(decoded)
	return block != nil && block.Type == "CERTIFICATE"
}

// LeaveOut removes the fields of others from a manifest, if they are theirs before the object
// exists.
func LeaveOut(o *unstructured.Unstructured) {
	kind := o.GroupVersionKind().GroupKind()
	for _, row := range Rows {
		if row.always && row.concerns(kind) {
			for _, p := range row.paths(o.Object, nil) {
				p.remove(o.Object)
			}
		}
	}
}

// Uncompared removes the fields of others from the content of an object, for a comparison.
func Uncompared(kind schema.GroupKind, content map[string]any) {
	for _, row := range Rows {
		if (row.compared || row.always) && row.concerns(kind) {
			for _, p := range row.paths(content, content) {
				p.remove(content)
			}
		}
	}
}

// Yield changes a manifest to keep the fields of others and the ignored ones. It leaves a field out
// if another manager owns it, so a later write of the manager cannot be lost. It takes over a value
// without another owner, because server-side apply would remove it. It reports the take-over: the
// value may have changed in the meantime.
func Yield(wanted, found *unstructured.Unstructured, manager string, scaler *Bounds, ignored Ignored) (taken bool) {
	for _, p := range append(yielded(wanted, found, scaler), ignored.paths...) {
		value, there := p.get(found.Object)
		if there && !p.ownedByOthers(found, manager) {
			p.set(wanted.Object, value)
			taken = true
		} else {
			p.remove(wanted.Object)
		}
	}
	return taken
}

// Fill writes into a manifest the values of others, for a replacement of the whole object.
func Fill(wanted, found *unstructured.Unstructured, scaler *Bounds, ignored Ignored) {
	for _, p := range yielded(wanted, found, scaler) {
		if value, there := p.get(found.Object); there {
			p.set(wanted.Object, value)
		}
	}
	for _, p := range ignored.paths {
		if value, there := p.get(found.Object); there {
			p.put(wanted.Object, value)
		}
	}
}

func yielded(wanted, found *unstructured.Unstructured, scaler *Bounds) (paths []path) {
	kind := wanted.GroupVersionKind().GroupKind()
	for _, row := range Rows {
		if row.concerns(kind) && !row.compared {
			paths = append(paths, row.paths(wanted.Object, found.Object)...)
		}
	}
	if scaler.Hold(Replicas(found)) {
		paths = append(paths, replicas)
	}
	return paths
}

// MayYield reports whether others may own a field of the manifest. Then the object must be read
// before the manifest is applied.
func MayYield(wanted *unstructured.Unstructured) bool {
	kind := wanted.GroupVersionKind().GroupKind()
	return Replicas(wanted) != NoReplicas || slices.ContainsFunc(Rows, func(row Row) bool {
		return row.concerns(kind) && !row.compared && !row.always
	})
}
