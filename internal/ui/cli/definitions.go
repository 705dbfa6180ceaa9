package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
)

// definitionsFit checks that the hub's CRDs can replace those on the cluster. The error lists
// every obstacle with its remedy.
func (c *checked) definitionsFit() check {
	return check{"definitions", false, func(ctx context.Context) (string, error) {
		files, err := crds.FS.ReadDir(".")
		if err != nil {
			return "", err
		}
		var hindrances []string
		for _, file := range files {
			hindrance, err := c.hindranceOf(ctx, file.Name())
			if err != nil {
				return "", err
			}
			if hindrance != "" {
				hindrances = append(hindrances, hindrance)
			}
		}
		if len(hindrances) > 0 {
			return "", fmt.Errorf("CustomResourceDefinitions on %s conflict with Muster's; nothing is changed:\n%s",
				c.role, strings.Join(hindrances, "\n"))
		}
		return "the definitions can be installed", nil
	}}
}

// rolesFit checks that the hub can create the ClusterRoles of agents. The hub makes the same
// check at its start.
func (c *checked) rolesFit() check {
	return check{"roles", false, func(ctx context.Context) (string, error) {
		found, err := agentroles.FindRoles(ctx, c)
		switch {
		case apierrors.IsForbidden(err):
			return "", notAsked{err}
		case err != nil:
			return "", err
		case len(found.Foreign) > 0:
			return "", fmt.Errorf("ClusterRoles on %s have names of Muster's, and neither Muster nor Rancher Fleet created them; nothing is "+
				"changed. If you do not need them:\n  kubectl --context %s delete clusterrole %s",
				c.role, c.contextName(), strings.Join(found.Foreign, " "))
		}
		return "the roles of agents can be created", nil
	}}
}

// hindranceOf returns the obstacle to the installation of one CRD, or "".
func (c *checked) hindranceOf(ctx context.Context, file string) (string, error) {
	group, resource, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), "_")
	installed := &apiextensionsv1.CustomResourceDefinition{}
	switch err := c.Get(ctx, client.ObjectKey{Name: resource + "." + group}, installed); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading CustomResourceDefinition %s.%s on %s: %w", resource, group, c.role, err)
	}
	text, err := crds.FS.ReadFile(file)
	if err != nil {
		return "", err
	}
	ours := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, ours); err != nil {
		return "", fmt.Errorf("reading the definition %s: %w", file, err)
	}
	return hindrance(installed, ours, c.contextName(), func() (bool, error) { return c.anyOf(ctx, installed) })
}

// hindrance returns the obstacle to the update of a CRD, with the remedy. anyObjects reports
// whether objects of the kind exist.
func hindrance(installed, ours *apiextensionsv1.CustomResourceDefinition, context string, anyObjects func() (bool, error)) (string, error) {
	if !installed.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("CustomResourceDefinition %s is being deleted: wait until it is gone. Finalizers of its objects hold it: kubectl "+
			"--context %s get %[1]s -A",
			installed.Name, context), nil
	}
	if installed.Spec.Scope != ours.Spec.Scope {
		return fmt.Sprintf("CustomResourceDefinition %s has the scope %s, and Muster's has %s: it belongs to other software, and both cannot "+
			"share a cluster",
			installed.Name, installed.Spec.Scope, ours.Spec.Scope), nil
	}
	var lost []string
	for _, version := range installed.Status.StoredVersions {
		if !serves(ours, version) {
			lost = append(lost, version)
		}
	}
	if len(lost) == 0 {
		return "", nil
	}
	storage := storageVersion(installed)
	says := fmt.Sprintf("CustomResourceDefinition %s lists the stored version %s, unknown to Muster: ",
		installed.Name, strings.Join(lost, " and "))
	if slices.Contains(lost, storage) {
		return says + "upgrade what is installed there to a release that stores " + storageVersion(ours) + ", and try again", nil
	}
	any, err := anyObjects()
	if err != nil {
		return "", err
	}
	kubectl, rewrite := "kubectl --context "+context, ""
	if any {
		rewrite = fmt.Sprintf("\n  %s get %s -A -o json | %[1]s replace -f -", kubectl, installed.Name)
	}
	return fmt.Sprintf("%shave %s written and the other forgotten:%s\n  %s patch customresourcedefinition %s --subresource=status "+
		"--type=merge -p '{\"status\":{\"storedVersions\":[%[2]q]}}'",
		says, storage, rewrite, kubectl, installed.Name), nil
}

// anyOf reports whether objects of a kind exist.
func (c *checked) anyOf(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(schema.GroupVersionKind{
		Group: definition.Spec.Group, Version: storageVersion(definition), Kind: definition.Spec.Names.Kind + "List",
	})
	if err := c.List(ctx, objects, client.Limit(1)); err != nil {
		return false, fmt.Errorf("looking for objects of %s on %s: %w", definition.Name, c.role, err)
	}
	return len(objects.Items) > 0, nil
}

func serves(definition *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(definition.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// storageVersion returns the storage version of a CRD. Each CRD has one.
func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}
