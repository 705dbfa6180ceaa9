package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestDoctorRemovesLeftoversOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := testkube.Turn(t, "cli-leftovers")
	it, ctx := their{t, cluster, cluster.Client(t)}, t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agent-by-hand", Labels: map[string]string{"name": "agent-by-hand"}}}
	it.check(it.Create(ctx, namespace))
	key, err := credential.NewAgentKey()
	it.check(err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: naming.AgentKeySecret}, Data: map[string][]byte{"key": key.Seed()},
	}
	it.check(it.Create(ctx, secret))
	kubeconfig := filepath.Join(cluster.Dir, "kubeconfig")
	run := func(arguments ...string) (string, error) {
		var out strings.Builder
		command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader("yes\n"), Out: &out, ErrOut: &out})
		command.SetArgs(append([]string{"doctor", "--kubeconfig", kubeconfig}, arguments...))
		err := command.ExecuteContext(ctx)
		return out.String(), err
	}
	exists := func(want bool) {
		t.Helper()
		err := it.Get(context.Background(), client.ObjectKeyFromObject(secret), secret)
		if err != nil && !apierrors.IsNotFound(err) || (err == nil) != want {
			t.Errorf("the Secret: %v", err)
		}
	}
	if said, err := run("--remove"); !errors.As(err, &usageError{}) {
		t.Errorf("--remove alone: %v\n%s", err, said)
	}
	said, err := run("--leftovers")
	if !errors.Is(err, errNotWell) || !strings.Contains(said, "leftover   Secret agent-by-hand/fleet-agent-key: it has the key of an agent") ||
		!strings.Contains(said, "leftover   Namespace agent-by-hand") {
		t.Errorf("it fails with %v and says\n%s", err, said)
	}
	if said, err := run("--leftovers", "--remove", "--dry-run"); err != nil || !strings.Contains(said, "Nothing is removed") {
		t.Errorf("with --dry-run: %v\n%s", err, said)
	}
	if said, err := run("--leftovers", "--remove"); err == nil || !strings.Contains(err.Error(), "use --yes") {
		t.Errorf("without a terminal: %v\n%s", err, said)
	}
	exists(true)

	// A user who may not look does not hear that nothing is left.
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	it.check(os.WriteFile(kubeconfig, cluster.Kubeconfig(t, cluster.Account(t, "no-rights", "system:discovery")), 0o600))
	if said, err := run("--leftovers"); !apierrors.IsForbidden(err) || strings.Contains(said, "No leftovers") {
		t.Errorf("without rights: %v\n%s", err, said)
	}
	kubeconfig = filepath.Join(cluster.Dir, "kubeconfig")
	said, err = run("--leftovers", "--remove", "--yes")
	if err != nil || !strings.Contains(said, "Namespace agent-by-hand is removed; 0 left") {
		t.Errorf("with --yes: %v\n%s", err, said)
	}
	exists(false)
}
