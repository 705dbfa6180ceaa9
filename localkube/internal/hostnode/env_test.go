package hostnode

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "one", "B": "$(A)"}
	for text, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		"$(A)":                  "one",
		"--x=$(A),$(A)":         "--x=one,one",
		"an unknown $(C)":       "an unknown $(C)",
		"escaped $$(A)":         "escaped $(A)",
		"escaped $$$(A)":        "escaped $one",
		"values are final $(B)": "values are final $(A)",
		"open $(A":              "open $(A",
		"shell $A ${A}":         "shell $A ${A}",
		"end $":                 "end $",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("expand(%q) = %q, want %q", text, got, want)
		}
	}
}

// fixedObjects holds one Secret and one ConfigMap.
type fixedObjects struct{}

func (fixedObjects) secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if name != "keys" {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &corev1.Secret{Data: map[string][]byte{"token": []byte("s3cret")}}, nil
}

func (fixedObjects) configMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if name != "settings" {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"colour": "green"}}, nil
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func secretKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func TestEnvironment(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "u1",
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"example.com/x": "y"},
		},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "robot"},
	}
	f := facts{podIP: "127.9.9.1", hostIP: loopback, allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	reference := corev1.LocalObjectReference{Name: "settings"}
	yes := true
	for name, test := range map[string]struct {
		container corev1.Container
		want      map[string]string
		wantErr   string
	}{
		"a value sees earlier ones and those of envFrom": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{Prefix: "S_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}}},
				Env:     []corev1.EnvVar{{Name: "A", Value: "$(S_colour)"}, {Name: "B", Value: "$(A)-$(C)"}, {Name: "C", Value: "late"}},
			},
			want: map[string]string{"S_colour": "green", "A": "green", "B": "green-$(C)", "C": "late"},
		},
		"every supported field": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "UID", ValueFrom: field("metadata.uid")}, {Name: "L", ValueFrom: field("metadata.labels['app']")},
				{Name: "AN", ValueFrom: field("metadata.annotations['example.com/x']")}, {Name: "NODE", ValueFrom: field("spec.nodeName")},
				{Name: "SA", ValueFrom: field("spec.serviceAccountName")}, {Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "HOST", ValueFrom: field("status.hostIP")},
			}},
			want: map[string]string{
				"NAME": "web", "NS": "shop", "UID": "u1", "L": "web", "AN": "y", "NODE": "n", "SA": "robot",
				"IP": "127.9.9.1", "HOST": "127.0.0.1",
			},
		},
		"keys of secrets, an absent optional one left out": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "T", ValueFrom: secretKey("keys", "token", false)},
				{Name: "NO_KEY", ValueFrom: secretKey("keys", "other", true)},
				{Name: "NO_SECRET", ValueFrom: secretKey("others", "token", true)},
			}},
			want: map[string]string{"T": "s3cret"},
		},
		"an optional envFrom that is absent": {
			container: corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: &yes,
			}}}},
			want: map[string]string{},
		},
		"a limit that is not set is the node's": {
			container: corev1.Container{
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}},
				Env: []corev1.EnvVar{
					{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
					{Name: "MEM", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
						Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
					}}},
				},
			},
			want: map[string]string{"CPU": "2", "MEM": "100"},
		},
		"a required key that is absent": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "T", ValueFrom: secretKey("keys", "other", false)}}},
			wantErr:   "variable T: secret keys has no key other",
		},
		"a field that is not supported": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "T", ValueFrom: field("status.phase")}}},
			wantErr:   "variable T: field status.phase is not supported by localkube",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := environment(t.Context(), pod, &test.container, f, fixedObjects{})
			if text := errorText(err); text != test.wantErr {
				t.Fatalf("error %q, want %q", text, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
