package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/naming"
)

// crdStep is the treatment of a definition in the directory crds/ of a chart.
type crdStep string

const (
	// crdLeft: the definition stays as it is on the member.
	crdLeft crdStep = "left"
	// crdCreated: the member has no such definition.
	crdCreated crdStep = "created"
	// crdReplaced: the definition on the member differs, and the release owns it.
	crdReplaced crdStep = "replaced"
	// crdMarked: the definition becomes the release's, and its content stays.
	crdMarked crdStep = "marked"
)

// CRDConflict is the error for a definition in crds/ that the release may not replace.
type CRDConflict struct{ message string }

func (c *CRDConflict) Error() string { return c.message }

// definition is a definition in the directory crds/ of a chart, and the one on the member.
type definition struct {
	wanted *unstructured.Unstructured
	// found is nil if the member has none.
	found *unstructured.Unstructured
	// differs is set if the two have another content, apart from defaults.
	differs bool
	holder  crdHolder
}

// crdHolder is the owner of a definition on the member.
type crdHolder struct {
	// own is set for a mark of the release, or of a replaced one. current is set if the mark needs no
	// change.
	own, current bool
	// other names another owner; empty if none is known.
	other string
}

// decideCRD returns the step for a definition. It never changes a definition of another owner, and
// never makes stored objects unreadable.
func decideCRD(d definition, setting string, release ID, takesOver bool) (crdStep, error) {
	name := d.wanted.GetName()
	replaces := setting == fleet.CRDsCreateReplace
	switch {
	case setting == fleet.CRDsSkip:
		return crdLeft, nil
	case d.found == nil:
		return crdCreated, nil
	case d.found.GetDeletionTimestamp() != nil:
		return "", fmt.Errorf("CustomResourceDefinition %s of crds/ is being deleted: the Bundle is deployed when it is gone", name)
	case d.holder.own && !d.holder.current && !(d.differs && replaces):
		return crdMarked, nil
	case !d.differs && replaces && takesOver && d.holder == (crdHolder{}):
		return crdMarked, nil
	case !d.differs || !replaces:
		return crdLeft, nil
	case !d.holder.own && d.holder.other != "":
		return "", &CRDConflict{fmt.Sprintf("CustomResourceDefinition %s of crds/ differs and belongs to %s, so it is not replaced: set "+
			"helm.crds to Create to leave it as it is, or give it to this release: %s", name, d.holder.other, adoptCommand(name, release))}
	case !d.holder.own && !takesOver:
		return "", &CRDConflict{fmt.Sprintf("CustomResourceDefinition %s of crds/ differs and bears no mark of a release, so it is not "+
			"replaced: set helm.takeOwnership, or helm.crds to Create to leave it as it is", name)}
	}
	if lost, err := lostVersions(d.wanted, d.found); err != nil {
		return "", err
	} else if len(lost) > 0 {
		return "", &CRDConflict{fmt.Sprintf("CustomResourceDefinition %[1]s of crds/ no longer serves %[2]s, and status.storedVersions on "+
			"the member has it, so the definition is not replaced: write its objects again in a newer version, then remove %[2]s from the "+
			"list: kubectl edit customresourcedefinition %[1]s --subresource=status", name, strings.Join(lost, ", "))}
	}
	return crdReplaced, nil
}

// adoptCommand returns the command to give a definition to a release.
func adoptCommand(name string, release ID) string {
	return fmt.Sprintf("kubectl annotate --overwrite customresourcedefinition %s %s=%s %s=%s",
		name, helmReleaseName, release.Name, helmReleaseNamespace, release.Namespace)
}

// holderOf returns the owner of a definition on the member. A mark counts more than field managers,
// because an administrator can set it. The first of the releases is the current one.
func holderOf(found *unstructured.Unstructured, releases []ID) (crdHolder, error) {
	for i, id := range releases {
		if Belongs(Summary{Name: id.Name, Namespace: id.Namespace}, found) {
			return crdHolder{own: true, current: i == 0 && applied.Keeps(found)}, nil
		}
	}
	if name := NameOf(found); name != "" {
		return crdHolder{other: "release " + ID{Namespace: found.GetAnnotations()[helmReleaseNamespace], Name: name}.String()}, nil
	}
	if owners := found.GetOwnerReferences(); len(owners) > 0 {
		return crdHolder{other: owners[0].Kind + " " + owners[0].Name}, nil
	}
	for _, entry := range found.GetManagedFields() {
		writes, err := writesSpec(entry)
		if err != nil {
			return crdHolder{}, fmt.Errorf("reading the managed fields of CustomResourceDefinition %s: %w", found.GetName(), err)
		}
		if writes && entry.Manager != FieldManager {
			return crdHolder{other: "field manager " + entry.Manager}, nil
		}
	}
	return crdHolder{}, nil
}

// writesSpec reports whether a manager owns more of a spec than an injected certificate.
func writesSpec(entry metav1.ManagedFieldsEntry) (bool, error) {
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return false, nil
	}
	fields := map[string]any{}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false, err
	}
	inside, _ := fields["f:spec"].(map[string]any) // nil if the manager owns nothing of it
	for _, step := range []string{"f:conversion", "f:webhook", "f:clientConfig", "f:caBundle"} {
		for key := range inside {
			if key != "." && key != step {
				return true, nil
			}
		}
		inside, _ = inside[step].(map[string]any) // nil at the end
	}
	return false, nil
}

// lostVersions returns the stored versions of a definition missing or unserved in the wanted one.
func lostVersions(wanted, found *unstructured.Unstructured) (lost []string, err error) {
	after, err := specOf(wanted)
	if err != nil {
		return nil, err
	}
	before, err := specOf(found)
	if err != nil {
		return nil, err
	}
	stored, _, err := unstructured.NestedStringSlice(found.Object, "status", "storedVersions")
	if err != nil {
		return nil, fmt.Errorf("reading status.storedVersions of CustomResourceDefinition %s: %w", found.GetName(), err)
	}
	for _, version := range stored {
		has := slices.ContainsFunc(after.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
		if !has || serves(before, version) && !serves(after, version) {
			lost = append(lost, version)
		}
	}
	return lost, nil
}

func serves(spec apiextensionsv1.CustomResourceDefinitionSpec, version string) bool {
	return slices.ContainsFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

// specOf returns the spec of a definition with the defaults of the API server.
func specOf(object *unstructured.Unstructured) (apiextensionsv1.CustomResourceDefinitionSpec, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	text, err := json.Marshal(object.Object["spec"])
	if err == nil {
		err = json.Unmarshal(text, &typed.Spec)
	}
	if err != nil {
		return typed.Spec, fmt.Errorf("reading CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(typed)
	return typed.Spec, nil
}

// digestOfCRD returns the digest of the content of a definition. The certificate of a conversion
// counts only if the chart has one; otherwise an injector owns it.
func digestOfCRD(object *unstructured.Unstructured, withCertificate bool) (string, error) {
	spec, err := specOf(object)
	if err != nil {
		return "", err
	}
	if c := spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && !withCertificate {
		c.Webhook.ClientConfig.CABundle = nil
	}
	text, err := json.Marshal(spec)
	var content any
	if err == nil {
		err = json.Unmarshal(text, &content) // defaults in schemas are kept as they were written
	}
	if err == nil {
		text, err = json.Marshal(content)
	}
	if err != nil {
		return "", fmt.Errorf("encoding CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	return naming.ShortDigest(text), nil
}

// hasCertificate reports whether the author of a definition wrote the certificate of its
// conversion.
func hasCertificate(object *unstructured.Unstructured) bool {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	return err == nil && manifest.IsCertificate(value)
}

// differ reports whether two definitions have another content.
func differ(wanted, found *unstructured.Unstructured) (bool, error) {
	certificate := hasCertificate(wanted)
	left, err := digestOfCRD(wanted, certificate)
	if err != nil {
		return false, err
	}
	right, err := digestOfCRD(found, certificate)
	return left != right, err
}
