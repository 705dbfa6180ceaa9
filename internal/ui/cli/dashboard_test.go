package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestTheDashboardIsServedUntilItsUserEndsIt(t *testing.T) {
	r := newRig(t)
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "displayed"},
	})))
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	admin.refused("dashboard --port 1 --no-browser --context nowhere", "has no context nowhere")
	admin.refused("dashboard --port 70000", "choose another port with --port")

	nobody := of(t, r.Cluster, r.Account(t, "sees-nothing", ""))
	nobody.refused("dashboard", "cannot list resource", "use --namespace for one workspace")

	tenant := of(t, r.Cluster, r.Account(t, "sees-team", ""))
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sees-team"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}}}})))
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "sees-team",
	},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "sees-team"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "sees-team"}}})))
	testkube.Eventually(t, "the right counts", func() error { _, _, err := tenant.run("get", "clusters", "-n", "team"); return err })

	ctx, end := context.WithCancel(t.Context())
	defer end()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: io.Discard})
		command.SetArgs([]string{"dashboard", "--kubeconfig", tenant.kubeconfig, "--namespace", "team"})
		ended <- command.ExecuteContext(ctx)
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	r.check(err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	_, address, _ := strings.Cut(strings.TrimSpace(line), " is at ")
	jar, err := cookiejar.New(nil)
	r.check(err)
	browser := &http.Client{Jar: jar}
	testkube.Eventually(t, "the page shows the member", func() error {
		response, err := browser.Get(address)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		for _, want := range []string{"team/displayed", "Not shown: memberclusters"} {
			if err == nil && !strings.Contains(string(text), want) {
				err = fmt.Errorf("it does not show %s: %s", want, text)
			}
		}
		return err
	})
	end()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
