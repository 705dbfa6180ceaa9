package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func newStandbyToken(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b, life, name := newHubber(streams, h), standby.Life, standby.Secret
	command := &cobra.Command{
		Use:   "standby-token",
		Short: "Print a Secret with a token, for agents to find a restored hub here",
		Long: `Create an account on the standby, the cluster for a restore of the hub, and print a Secret with a
token of this account. Create the Secret on the first hub, and name it in apiServerFallbacks of the
chart fleet. The hub gives the token to each agent with a key, sealed to this key. If the hub is
lost and restored on the standby, the agents go there by themselves.

The account may do nothing before "muster restore", which lets it create registration requests. The
restored hub grants them only to agents with the key of a restored Cluster. For the agent of each
restored MemberCluster, it publishes a credential, sealed to the key of the agent. To end all tokens,
delete the ServiceAccount ` + naming.SystemNamespace + `/` + standby.Account + ` on the standby.`,
		Example: `  muster hub standby-token --context new-hub | kubectl --context hub apply -f -`,
		Args:    takesNone, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), b.standbyToken(command.Context(), name, life))
		},
	}
	command.Flags().DurationVar(&life, "duration", life, "Life of the token; the API server may grant less")
	command.Flags().StringVar(&name, "name", name, "Name of the Secret")
	return command
}

// standbyToken prints the Secret with a token of the standby. Everything else goes to the second
// stream, because the output is for kubectl.
func (b *hubber) standbyToken(ctx context.Context, name string, life time.Duration) error {
	if life < 10*time.Minute {
		return usageError{fmt.Errorf("--duration %s: use at least 10m", life)}
	}
	on, err := b.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, on.reachable()[:1]); err != nil {
		return err
	}
	account := standby.ServiceAccount(naming.SystemNamespace)
	if err := on.Create(ctx, account); apierrors.IsNotFound(err) {
		return fmt.Errorf("%s has no namespace %s: install the hub there first, with muster init", on.server, naming.SystemNamespace)
	} else if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	token, err := kube.RequestToken(ctx, on.SubResource("token"), standby.ServiceAccount(naming.SystemNamespace), life)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: name,
			Labels: map[string]string{fleet.LabelManaged: "true"}}, // the hub notices changes of such Secrets at once
		StringData: map[string]string{standby.Key: token},
	}
	content, err := yaml.Marshal(secret)
	if err != nil {
		return fmt.Errorf("encoding the Secret: %w", err)
	}
	if _, err := b.Out.Write(content); err != nil {
		return fmt.Errorf("printing the Secret: %w", err)
	}
	p := newProse(b.ErrOut)
	p.paragraph(0, "The token is of %s, and expires at %s. Create the Secret on the first hub, and name it in its chart: "+
		"apiServerFallbacks[0].tokenSecret.name=%s", on.server, endOf(token), name)
	return p.err
}

// endOf returns the end of a token for a sentence.
func endOf(token string) string {
	if expires := credential.ClaimsOf(token).Expires; !expires.IsZero() {
		return expires.UTC().Format(time.RFC3339)
	}
	return "no time"
}

// standbys prints a line about the token for each further address of a hub.
func (b *hubber) standbys(ctx context.Context, hub hubIdentity, p *prose) error {
	configMap := &corev1.ConfigMap{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}, configMap)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s, the settings of the hub: %w", naming.SystemNamespace, naming.HubConfigMap, err)
	}
	var settings struct {
		Fallbacks []struct {
			URL    string `json:"apiServerURL"`
			Secret struct {
				Name string `json:"name"`
				Key  string `json:"key"`
			} `json:"tokenSecret"`
		} `json:"apiServerFallbacks"`
	}
	if err := yaml.Unmarshal([]byte(configMap.Data["config"]), &settings); err != nil {
		return fmt.Errorf("reading the settings of the hub: %w", err)
	}
	for _, to := range settings.Fallbacks {
		if to.Secret.Name == "" {
			continue
		}
		secret := &corev1.Secret{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: to.Secret.Name}, secret)
		if apierrors.IsForbidden(err) {
			p.line("%-8s %s, and you may not read Secret %s", "Standby", to.URL, to.Secret.Name)
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s/%s, the token of a standby: %w", naming.SystemNamespace, to.Secret.Name, err)
		}
		token := string(secret.Data[cmp.Or(to.Secret.Key, standby.Key)])
		says := "token until " + endOf(token)
		if problem := standby.Problem(credential.ClaimsOf(token).Expires, time.Now()); problem != "" {
			says = problem
		}
		if token == "" {
			says = "no token in Secret " + to.Secret.Name + ": muster hub standby-token"
		}
		p.line("%-8s %s, %s", "Standby", to.URL, says)
	}
	return nil
}
