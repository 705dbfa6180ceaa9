package command

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheckAsksTheAgentsThemselves(t *testing.T) {
	pod := func(name, status string, code int) corev1.Pod {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				code = http.StatusNotFound
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(status + "\n"))
		}))
		t.Cleanup(server.Close)
		address, err := url.Parse(server.URL)
		check(t, err)
		port, err := strconv.Atoi(address.Port())
		check(t, err)
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: name},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 1}, {Name: "probes", ContainerPort: int32(port)}},
				}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.Hostname()},
		}
	}
	joined, joining := pod("a", "Joined: joined as clusters/c", 200), pod("b", "Joining: the hub does not answer", 503)
	pending, ended := joined, joined
	pending.Name, pending.Status = "c", corev1.PodStatus{Phase: corev1.PodPending}
	ended.Name, ended.Status = "d", corev1.PodStatus{Phase: corev1.PodFailed}
	for name, c := range map[string]struct {
		pods         []corev1.Pod
		said, failed string
	}{
		"one that has joined":                  {[]corev1.Pod{joined}, "a: Joined: joined as clusters/c", ""},
		"one that has not joined":              {[]corev1.Pod{joining}, "", "b: it has not joined: Joining: the hub does not answer"},
		"one of two has not joined":            {[]corev1.Pod{joined, joining}, "a: Joined", "b: it has not joined"},
		"one that does not run":                {[]corev1.Pod{pending}, "", "kubectl -n agents describe pod c"},
		"none":                                 {nil, "", "no agent runs in namespace agents"},
		"only what a predecessor left":         {[]corev1.Pod{ended}, "", "no agent runs in namespace agents"},
		"one that joined beside a predecessor": {[]corev1.Pod{ended, joined}, "a: Joined", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := inquire(t.Context(), c.pods, "agents", &out)
			failed := ""
			if err != nil {
				failed = err.Error()
			}
			if !strings.Contains(out.String(), c.said) || !strings.Contains(failed, c.failed) || (failed == "") != (c.failed == "") {
				t.Errorf("it says %q and fails with %q", out.String(), failed)
			}
		})
	}
}
