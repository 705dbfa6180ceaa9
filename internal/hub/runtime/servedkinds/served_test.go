package servedkinds

import (
	"io/fs"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
	"github.com/muster-fleet/muster/internal/kube"
)

// TestAMissingDefinitionIsNamedAsItIs has a hub that starts without a definition of the fleet.
func TestAMissingDefinitionIsNamedAsItIs(t *testing.T) {
	k := New(clock.RealClock{}, logr.Discard(), runtime.NewScheme())
	k.mapper = meta.NewDefaultRESTMapper(nil)
	files, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(crds.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: "v1", Kind: definition.Spec.Names.Kind}
		if name, err := k.Deleted(t.Context(), kube.Metadata(kind)); name != definition.Name || err != nil {
			t.Errorf("the definition of %s is called %q, %v, want %s", kind.Kind, name, err, definition.Name)
		}
	}
}
