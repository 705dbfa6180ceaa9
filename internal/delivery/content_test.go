package delivery

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func packed(t *testing.T, resources ...fleet.BundleResource) *fleet.Content {
	t.Helper()
	content, err := Pack(resources)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestNamesAreThoseOfUpstream(t *testing.T) {
	content := packed(t, fleet.BundleResource{Name: "cm.yaml", Content: "a"})
	if want := "s-316d3a6955f840ad04d8266b9b52568847e1a7b2f1162ca8de09fe5538c87"; content.Name != want {
		t.Errorf("content is called %s, want %s", content.Name, want)
	}
	id, err := DeploymentID("s-x", fleet.BundleDeploymentOptions{})
	if want := "s-x:ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"; err != nil || id != want {
		t.Errorf("deployment ID %s (%v), want %s", id, err, want)
	}
	drift := fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{}, CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	if with, err := DeploymentID("s-x", drift); err != nil || with != id {
		t.Errorf("how drift is found and corrected is in the deployment ID: %s (%v)", with, err)
	}
	if with, err := FormerDeploymentID("s-x", drift); err != nil || with == id {
		t.Errorf("the deployment ID of earlier versions: %s (%v)", with, err)
	}
	if got := ContentName(id); got != "s-x" {
		t.Errorf("content of the deployment ID: %s", got)
	}
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	resources := []fleet.BundleResource{{Name: "a.yaml", Content: "a: <b>"}, {Name: "b", Content: "eA==", Encoding: fleet.EncodingGzip}}
	got, err := Unpack(packed(t, resources...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(resources, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAChangedContentIsRefused(t *testing.T) {
	good := packed(t, fleet.BundleResource{Name: "a.yaml", Content: "a"})
	other := packed(t, fleet.BundleResource{Name: "a.yaml", Content: "b"})
	for name, change := range map[string]func(*fleet.Content){
		"other bytes":                   func(c *fleet.Content) { c.Content = other.Content },
		"other bytes and the sum of it": func(c *fleet.Content) { c.Content, c.SHA256Sum = other.Content, other.SHA256Sum },
		"another sum":                   func(c *fleet.Content) { c.SHA256Sum = other.SHA256Sum },
		"no gzip":                       func(c *fleet.Content) { c.Content = []byte("a") },
		"cut off":                       func(c *fleet.Content) { c.Content = c.Content[:len(c.Content)-9] },
	} {
		changed := good.DeepCopy()
		change(changed)
		if _, err := Unpack(changed); err == nil || !strings.Contains(err.Error(), good.Name) {
			t.Errorf("%s: error %v, want one that names the Content", name, err)
		}
	}
}

func TestFile(t *testing.T) {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	writer.Write([]byte("text"))
	writer.Close()
	for _, c := range []struct {
		name     string
		resource fleet.BundleResource
		want     string
		fails    bool
	}{
		{"plain", fleet.BundleResource{Name: "f", Content: "text"}, "text", false},
		{
			"compressed", fleet.BundleResource{Name: "f", Content: base64.StdEncoding.EncodeToString(buffer.Bytes()), Encoding: fleet.EncodingGzip},
			"text", false,
		},
		{"no base64", fleet.BundleResource{Name: "f", Content: "%", Encoding: fleet.EncodingGzip}, "", true},
		{"no gzip", fleet.BundleResource{Name: "f", Content: "eA==", Encoding: fleet.EncodingGzip}, "", true},
		{"an unknown encoding", fleet.BundleResource{Name: "f", Content: "text", Encoding: "zstd"}, "", true},
	} {
		got, err := File(c.resource)
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %q, error %v", c.name, got, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f: ") {
			t.Errorf("%s: the error does not name the resource: %v", c.name, err)
		}
	}
}

func TestDeploymentIDFollowsValues(t *testing.T) {
	id := func(values string) string {
		got, err := DeploymentID("s-x", fleet.BundleDeploymentOptions{
			Helm: &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(values)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if id(`{"a":1}`) == id(`{"a":2}`) {
		t.Error("other values have the same ID")
	}
	if id(`{"a":1}`) != id(`{ "a": 1 }`) {
		t.Error("the same values have two IDs")
	}
}

func TestValuesHash(t *testing.T) {
	if got := ValuesHash(map[string][]byte{}); got != "" {
		t.Errorf("the hash of no values is %q", got)
	}
	a := ValuesHash(map[string][]byte{fleet.KeyValues: []byte("a"), fleet.KeyStagedValues: []byte("b")})
	b := ValuesHash(map[string][]byte{fleet.KeyValues: []byte("a"), fleet.KeyStagedValues: []byte("c")})
	if a == b || len(a) != 64 {
		t.Errorf("hashes %s and %s", a, b)
	}
}

func TestHashOfTheValuesOfABundle(t *testing.T) {
	got, err := BundleValuesHash(map[string][]byte{"values.yaml": []byte(`{"a":1}`), "b": []byte(`{}`)})
	// SHA-256 of {"b":"e30=","values.yaml":"eyJhIjoxfQ=="}
	if want := "b1484a8daeff87b6324ee97daf2a0bd1ad6db652cb2300d9316b1911caaace3d"; err != nil || got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}
