package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// issuedWithin is how long a token may take until its values are there, which takes the hub a moment.
const issuedWithin = 30 * time.Second

// reasonFailed is that of a token for which the hub could not write something, and tries again.
const reasonFailed = "Failed"

// What muster token create prints.
const (
	formatCommand = "command"
	formatHelm    = "helm"
	formatValues  = "values"
	formatToken   = "token"
)

// issuer is the command muster token create.
type issuer struct {
	genericiooptions.IOStreams
	*access
	ttl            time.Duration
	most           int32
	labels         map[string]string
	manual         bool
	cluster        string
	id, about      string
	format, hubURL string
}

func newToken(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	command := &cobra.Command{
		Use:   "token",
		Short: "Make tokens by which clusters register",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newTokenCreate(streams, h))
	return command
}

func newTokenCreate(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &issuer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a registration token, and print the line that registers a cluster with it",
		Long: `create makes a ClusterRegistrationToken in a workspace (--namespace, else ` + defaultWorkspace + `) and prints the line that registers a cluster with it, to be run where the cluster is: of
muster, or of helm. Whoever has that line can register as the token allows: one cluster within a day, unless you say otherwise. Given again with the same flags it prints the line again.`,
		Example: `  # For one cluster, within a day.
  muster token create web

  # For any number of clusters, without end.
  muster token create web --ttl 0 --max 0

  # Its Cluster is named web and gets a label that no agent can choose; somebody approves it.
  muster token create web --cluster web --label stamped.muster/env=prod --approve

  # The values for the chart fleet-agent, for GitOps.
  muster token create web --output values > values.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, args []string) error { return i.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.DurationVar(&i.ttl, "ttl", 24*time.Hour, "how long clusters can register with it; 0 for without end")
	flags.Int32Var(&i.most, "max", 1, "how many clusters can register with it; 0 for any number")
	flags.StringToStringVar(&i.labels, "label", nil, "a label that each Cluster gets that registers with it, such as env=prod")
	flags.BoolVar(&i.manual, "approve", false, "somebody has to approve each request that is made with it")
	flags.StringVar(&i.cluster, "cluster", "", "the only Cluster that can register with it")
	flags.StringVar(&i.id, "client-id", "", "the only client ID that can register with it")
	flags.StringVar(&i.about, "description", "", "what it is for")
	flags.StringVar(&i.hubURL, "hub-url", "", "the address of the hub's API server as clusters reach it, if the hub does not know it")
	flags.StringVarP(&i.format, "output", "o", formatCommand, "what to print: the command to run on the cluster, of muster (command) or helm, the values of the chart, or the token alone")
	complete(command, "output", cobra.FixedCompletions([]string{formatCommand, formatHelm, formatValues, formatToken}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (i *issuer) spec() fleet.ClusterRegistrationTokenSpec {
	spec := fleet.ClusterRegistrationTokenSpec{Labels: i.labels, Description: i.about, ClusterName: i.cluster, ClientID: i.id}
	if i.ttl > 0 {
		spec.TTL = &metav1.Duration{Duration: i.ttl}
	}
	if i.most > 0 {
		spec.MaxRegistrations = &i.most
	}
	if i.manual {
		spec.Approval = fleet.ApprovalManual
	}
	return spec
}

func (i *issuer) run(ctx context.Context, name string) error {
	switch {
	case !slices.Contains([]string{formatCommand, formatHelm, formatValues, formatToken}, i.format):
		return fmt.Errorf("--output %s: it is %s, %s, %s or %s", i.format, formatCommand, formatHelm, formatValues, formatToken)
	case i.format == formatToken && i.hubURL != "":
		return fmt.Errorf("--hub-url does not go with --output %s, which has no address", formatToken)
	case i.ttl < 0 || i.most < 0:
		return errors.New("--ttl and --max are not negative; 0 is for without end, and for any number")
	}
	hub, server, err := i.client()
	if err != nil {
		return err
	}
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace(), Name: name}, Spec: i.spec()}
	if err := i.ensure(ctx, hub, server, token); err != nil {
		return err
	}
	secret, err := i.issued(ctx, hub, token)
	if err != nil {
		return err
	}
	return i.print(secret, server)
}

// ensure makes a token, or finds that it is there as it should be.
func (i *issuer) ensure(ctx context.Context, hub client.Client, server string, token *fleet.ClusterRegistrationToken) error {
	want := token.Spec
	err := hub.Create(ctx, token)
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(token.Spec, want) {
			return fmt.Errorf("%s exists and is another one than these flags ask for: choose another name, or look at it with muster get tokens %s -o yaml", i.title(token), view.NameOf(token))
		}
		return nil
	case kube.NotServed(err):
		return i.remedy(err, nil, &fleet.ClusterRegistrationTokenList{}, server)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %s on %s: kubectl create namespace %s", token.Namespace, server, token.Namespace)
	case err != nil:
		return fmt.Errorf("making %s: %w", i.title(token), err)
	}
	return nil
}

// issued waits for the Secret with the values of a token.
func (h *access) issued(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	var failed error // the hub tries again
	err := wait.PollUntilContextTimeout(ctx, lookEvery, issuedWithin, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return false, err
		}
		if ready := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady); ready != nil && ready.Status == corev1.ConditionFalse {
			err := fmt.Errorf("%s cannot be used (%s): %s", h.title(token), ready.Reason, ready.Message)
			if ready.Reason != reasonFailed {
				return false, err
			}
			failed = err
		}
		if token.Status.SecretName == "" {
			return false, nil
		}
		err := hub.Get(ctx, client.ObjectKey{Namespace: token.Namespace, Name: token.Status.SecretName}, secret)
		return err == nil, client.IgnoreNotFound(err)
	})
	switch {
	case !wait.Interrupted(err) || errors.Is(ctx.Err(), context.Canceled):
		return secret, err
	case failed != nil:
		return nil, failed
	}
	return nil, fmt.Errorf("%s has no values yet: does a hub run? muster explain tokens %s says more", h.title(token), view.NameOf(token))
}

func (i *issuer) print(secret *corev1.Secret, server string) error {
	values := bootstrap.ReadBootstrap(secret)
	if i.format == formatToken {
		_, err := fmt.Fprintln(i.Out, values.Token)
		return err
	}
	if values.APIServerURL == "" && i.hubURL == "" {
		fmt.Fprintf(i.ErrOut, "The hub does not know its own address (value apiServerURL of the chart fleet), so that of your kubeconfig is used: see that the cluster reaches it, or say --hub-url.\n")
	}
	url, ca := i.address(values, server)
	if i.format != formatValues {
		_, err := fmt.Fprintln(i.Out, i.line(values.Token, url, ca))
		return err
	}
	text := secret.Data[bootstrap.ValuesKey]
	if url != values.APIServerURL {
		values.APIServerURL, values.APIServerCA = url, string(ca)
		var err error
		if text, err = yaml.Marshal(values); err != nil {
			return fmt.Errorf("writing the values of the token: %w", err)
		}
	}
	_, err := i.Out.Write(text)
	return err
}

// address is where clusters reach the hub. Without a CA that the hub knows, it is the kubeconfig's.
func (i *issuer) address(values bootstrap.Bootstrap, server string) (url string, ca []byte) {
	url, ca = cmp.Or(i.hubURL, values.APIServerURL, server), []byte(values.APIServerCA)
	if len(ca) == 0 {
		if config, err := i.ToRESTConfig(); err == nil && rest.LoadTLSFiles(config) == nil { // it was read before
			ca = config.CAData
		}
	}
	return url, ca
}

// line is what registers a cluster.
func (i *issuer) line(token, url string, ca []byte) string {
	encoded := base64.StdEncoding.EncodeToString(ca)
	if i.format == formatCommand {
		return view.JoinCommand(token, url, ca, i.id)
	}
	return view.CommandLine("helm -n "+naming.SystemNamespace+" install --create-namespace --wait fleet-agent fleet/fleet-agent",
		"--set token=", token, "--set apiServerURL=", escaped(url), "--set apiServerCA=", encoded, "--set-string clientID=", escaped(i.id))
}

// escaped is a value as Helm's --set takes it for one.
func escaped(value string) string { return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(value) }
