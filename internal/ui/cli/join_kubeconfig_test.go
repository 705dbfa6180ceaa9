package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestFlagsOfAJoinWithAKubeconfig(t *testing.T) {
	for says, j := range map[string]*joiner{
		"--token-name needs --hub-kubeconfig":     {tokenName: "t"},
		"leave them out":                          {hubKubeconfig: "f", token: "t", tokenName: "t"},
		"without --hub-context and without":       {hubKubeconfig: "f", hubContext: "hub", tokenName: "t"},
		"use --token-name NAME":                   {hubKubeconfig: "f"},
		"leave --token-name out":                  {hubKubeconfig: "f", member: true, tokenName: "t"},
		"a MemberCluster has no client ID":        {hubKubeconfig: "f", member: true, id: "x"},
		"--name is for --member or --hub-context": {hubKubeconfig: "f", tokenName: "t", name: "web"},
		"--timeout must be more than 0":           {hubKubeconfig: "f", tokenName: "t"},
		"is not a valid name of a MemberCluster":  {hubKubeconfig: "f", member: true, name: "a.b", timeout: time.Minute},
	} {
		j.access = newAccess()
		if err := j.validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	for _, j := range []*joiner{
		{hubKubeconfig: "f", member: true, name: "web", timeout: time.Minute}, {hubKubeconfig: "f", tokenName: "t", timeout: time.Minute},
	} {
		j.access = newAccess()
		if err := j.validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnusableKubeconfigIsRefusedBeforeTheClusterIsChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	for text, says := range map[string]string{
		"": "its key kubeconfig is missing or empty",
		"apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {}}, {name: b, context: {}}]\n": "no current-context",
		"apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
			"users: [{name: a, user: {tokenFile: /in/the/container}}]\n": "use --hub-url",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		j := &joiner{hubKubeconfig: file}
		if err := j.joinByKubeconfig(t.Context(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

func TestAKubeconfigOfAnotherOwnerIsLeftAlone(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: kubeconfigSecret}}
	h := newAccess()
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(theirs).Build()}
	j := &joiner{}
	if err := j.storeKubeconfig(t.Context(), c, "agents", []byte("x")); err == nil || !strings.Contains(err.Error(), "has another owner") {
		t.Errorf("got %v", err)
	}
	for range 2 { // the second time it is its own
		if err := j.storeKubeconfig(t.Context(), c, "others", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var made corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "others", Name: kubeconfigSecret}, &made); err != nil ||
		string(made.Data["kubeconfig"]) != "x" {
		t.Errorf("got %v, %v", made.Data, err)
	}
}
