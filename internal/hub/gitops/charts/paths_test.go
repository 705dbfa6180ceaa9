package charts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTheCredentialsOfAPath(t *testing.T) {
	secret := func(kind corev1.SecretType, key, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "paths"}, Type: kind,
			Data: map[string][]byte{key: []byte(text)}}
	}
	const text = "apps/web: {username: me, password: hunter2}\napps/*: {insecureSkipVerify: true}\nempty: {sshPrivateKey: aGk=}\n" +
		"wrong: {caBundle: hunter2}\n/rooted/: {username: me}\n.: {username: me}\n"
	good := secret(corev1.SecretTypeOpaque, keyPaths, text)
	for name, row := range map[string]struct {
		secret    *corev1.Secret
		directory string
		found     bool
		wrong     string
	}{
		"a path":                {good, "apps/web", true, ""},
		"a pattern":             {good, "apps/db", true, ""},
		"below a path":          {good, "apps/web/more", false, ""},
		"from the root":         {good, "rooted", true, ""},
		"the root":              {good, ".", true, ""},
		"another path":          {good, "tools", false, ""},
		"without a login":       {good, "empty", false, "empty in secrets-path.yaml has neither username"},
		"a wrong authority":     {good, "wrong", false, "wrong in secrets-path.yaml has neither username"},
		"no map":                {secret(corev1.SecretTypeOpaque, keyPaths, "hunter2"), "apps/web", false, "is no map from paths"},
		"another key":           {secret(corev1.SecretTypeOpaque, "username", "me"), "apps/web", false, "with the key secrets-path.yaml"},
		"the token of an agent": {secret(corev1.SecretTypeServiceAccountToken, keyPaths, text), "apps/web", false, "is not of type Opaque"},
	} {
		reader := fake.NewClientBuilder().WithObjects(row.secret).Build()
		credentials, err := CredentialsFor(t.Context(), reader, types.NamespacedName{Namespace: "clusters", Name: "paths"}, row.directory)
		if (credentials != nil) != row.found || (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: %v, %v", name, credentials, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error has the Secret: %v", name, err)
		}
	}
	none := fake.NewClientBuilder().Build()
	if _, err := CredentialsFor(t.Context(), none, types.NamespacedName{Namespace: "clusters", Name: "paths"}, "."); err == nil {
		t.Error("a Secret that does not exist was read")
	}
}
