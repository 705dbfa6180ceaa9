package delivery

import (
	"encoding/base64"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// FuzzUnpack reads a Content. Another writer may have taken its name.
func FuzzUnpack(f *testing.F) {
	packed, err := Pack([]fleet.BundleResource{{Name: "a.yaml", Content: "kind: ConfigMap"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Name, packed.SHA256Sum, packed.Content)
	f.Add("", "", []byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, name, sum string, data []byte) {
		content := &fleet.Content{Content: data, SHA256Sum: sum}
		content.Name = name
		if _, err := Unpack(content); err != nil {
			return
		}
		if plain, err := Gunzip(data, MaxContent); err != nil || contentName(naming.Digest(plain)) != name {
			t.Errorf("a Content is accepted under the name %q of another one", name)
		}
	})
}

// FuzzFile decodes a resource of a Bundle within a limit.
func FuzzFile(f *testing.F) {
	bomb, err := Gzip(make([]byte, 1<<20))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(base64.StdEncoding.EncodeToString(bomb), fleet.EncodingGzip)
	f.Add("plain", "")
	f.Add("%%%", "base64+gz")
	f.Fuzz(func(t *testing.T, content, encoding string) {
		const most = 64 << 10
		data, err := FileWithin(fleet.BundleResource{Name: "a", Content: content, Encoding: encoding}, most)
		if err == nil && len(data) > most {
			t.Errorf("%d bytes are unpacked, at most %d are allowed", len(data), most)
		}
	})
}
