package release

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestClientsOfAnAccountAreMadeOnceAndActAsIt(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Impersonate-User")
		http.NotFound(w, r)
	}))
	defer server.Close()
	c, err := NewCluster(&rest.Config{Host: server.URL}, "agents")
	if err != nil {
		t.Fatal(err)
	}
	as := func(account string) *Cluster {
		acting, err := c.As(account)
		if err != nil {
			t.Error(err)
		}
		return acting
	}
	var made [8]*Cluster
	var making sync.WaitGroup
	for i := range made {
		making.Go(func() { made[i] = as("team") })
	}
	making.Wait()
	for _, acting := range made {
		if acting != made[0] {
			t.Fatal("the clients of one account were made twice")
		}
	}
	var users []string
	for _, acting := range []*Cluster{as(""), as("team"), as("other"), as("team")} {
		if _, err := acting.Kube.CoreV1().ConfigMaps("web").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
			t.Error("a server that knows nothing answered")
		}
		users = append(users, <-asked)
	}
	want := []string{"", "system:serviceaccount:agents:team", "system:serviceaccount:agents:other", "system:serviceaccount:agents:team"}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	helm, err := c.asHelm(nil)
	if err != nil {
		t.Fatal(err)
	}
	if acting, err := helm.As("team"); err != nil || acting == made[0] {
		t.Errorf("Helm's field manager is not that of the account: %v", err)
	}
}
