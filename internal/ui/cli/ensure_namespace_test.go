package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/testkube"
)

// TestANamespaceThatYouMayNotCreateIsNotTakenForAnExistingOne joins with the rights of four users.
func TestANamespaceThatYouMayNotCreateIsNotTakenForAnExistingOne(t *testing.T) {
	cluster := testkube.Start(t, "namespaces")
	admin, ctx := cluster.Client(t), context.Background()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name                 string
		verbs                []string
		existing             string // what the join says if the namespace exists
		missing              string // and if it does not
		fails, createsMissed bool
	}{
		{name: "all", verbs: []string{"get", "create"}, missing: "is created", createsMissed: true},
		{name: "read-only", verbs: []string{"get"}, missing: "have an administrator run kubectl create namespace", fails: true},
		{name: "write-only", verbs: []string{"create"}, missing: "is created", createsMissed: true},
		{name: "neither", verbs: []string{"watch"}, existing: "so it must exist", missing: "so it must exist"},
	} {
		t.Run(row.name, func(t *testing.T) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "namespaces-" + row.name}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: row.verbs},
			}}
			check(client.IgnoreAlreadyExists(admin.Create(ctx, role)))
			config := rest.AnonymousClientConfig(cluster.Config)
			config.BearerToken = cluster.Account(t, role.Name, role.Name)
			user, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
			check(err)
			exists := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "exists-"}}
			check(admin.Create(ctx, exists))
			missing := strings.Replace(exists.Name, "exists-", "missing-", 1)
			testkube.Eventually(t, "the user has the rights", func() error {
				err := user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}, client.DryRunAll)
				if apierrors.IsForbidden(err) && !row.createsMissed {
					return nil
				}
				return err
			})
			ensure := func(name string) (string, error) {
				var out bytes.Buffer
				j := &joiner{progress: newProgress(&out)}
				err := j.ensureNamespace(ctx, &checked{access: &access{role: "the hub"}, Client: user}, name)
				return strings.Join(strings.Fields(out.String()), " "), err
			}
			said, err := ensure(exists.Name)
			if err != nil || (said == "") != (row.existing == "") || !strings.Contains(said, row.existing) {
				t.Errorf("of one that exists: %q, %v", said, err)
			}
			said, err = ensure(missing)
			if err != nil {
				said = err.Error()
			}
			if (err != nil) != row.fails || !strings.Contains(said, row.missing) {
				t.Errorf("of one that is missing: %q, %v", said, err)
			}
			err = admin.Get(ctx, client.ObjectKey{Name: missing}, &corev1.Namespace{})
			if (err == nil) != row.createsMissed {
				t.Errorf("reading the missing one afterwards: %v", err)
			}
		})
	}
}
