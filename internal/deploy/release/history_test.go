package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAHistoryThatWouldFillTheMemoryIsUnreadable(t *testing.T) {
	for name, row := range map[string]struct {
		size int
		want string
	}{
		"a large release": {maxHistory - 1000, ""},
		"a bomb": {
			maxHistory + 1, "secret apps/web holds no release that Helm could read: it unpacks to more than 32 MiB: restore it, or delete it",
		},
	} {
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		if _, err := zipped.Write([]byte(`{"name":"web","manifest":"` + strings.Repeat("a", row.size) + `"}`)); err != nil {
			t.Fatal(err)
		}
		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web"}, Data: map[string][]byte{
			"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes())),
		}}
		got := ""
		if err := decode(secret, &stored{}); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
