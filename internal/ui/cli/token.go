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
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// issuedWithin bounds the wait for the values of a new token.
const issuedWithin = 30 * time.Second

// tokenFormats are the output formats of muster token create and show.
var tokenFormats = []string{formatCommand, formatHelm, formatValues, formatToken}

// The output formats of muster token create.
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
		Short: "Create, show, rotate and revoke registration tokens",
		Args:  takesCommand,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newTokenCreate(streams, h), newTokenList(streams, h), newTokenShow(streams, h), newTokenRotate(streams, h),
		newTokenRevoke(streams, h))
	return command
}

func newTokenCreate(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &issuer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a registration token and print the command to join",
		Long: `Create a ClusterRegistrationToken in a workspace, and print the command to run on the
cluster, for muster or for helm. The workspace is --namespace, or ` + defaultWorkspace + ` by default.

A token registers one cluster within a day by default. Keep the command to yourself: anyone
with the command can register a cluster. Running create again with the same flags
prints the command again.`,
		Example: `  # Register one cluster within a day
  muster token create web

  # Register any number of clusters, without expiry
  muster token create web --ttl 0 --max 0

  # Fix the name of the Cluster, stamp a label, and require approval
  muster token create web --cluster web --label stamped.muster/env=prod --approve

  # Write the values of the chart fleet-agent, for GitOps
  muster token create web --output values > values.yaml`,
		Args:              takes(1, 1, "a name for the token"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, args []string) error { return i.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.DurationVar(&i.ttl, "ttl", 24*time.Hour, "Lifetime of the token; 0 for no expiry")
	flags.Int32Var(&i.most, "max", 1, "Number of clusters that can register with the token; 0 for any number")
	flags.StringToStringVar(&i.labels, "label", nil, "Label to stamp on each registered Cluster, such as env=prod")
	flags.BoolVar(&i.manual, "approve", false, "Require approval of each registration request")
	flags.StringVar(&i.cluster, "cluster", "", "Name of the only Cluster to accept")
	flags.StringVar(&i.id, "client-id", "", "The only client ID to accept")
	flags.StringVar(&i.about, "description", "", "Purpose of the token")
	i.formatFlags(command)
	return command
}

func (i *issuer) formatFlags(command *cobra.Command) {
	command.Flags().StringVar(&i.hubURL, "hub-url", "", "Address of the hub's API server for clusters (default: from the hub)")
	command.Flags().StringVarP(&i.format, "output", "o", formatCommand,
		"Output format: command for muster, helm, values for the chart, or token")
	complete(command, "output", cobra.FixedCompletions(tokenFormats, cobra.ShellCompDirectiveNoFileComp))
}

// checkFormat returns an error for an unknown format, and for an address that the format has not.
func (i *issuer) checkFormat() error {
	switch {
	case !slices.Contains(tokenFormats, i.format):
		return usageError{fmt.Errorf("--output %s: it is %s, %s, %s or %s", i.format, formatCommand, formatHelm, formatValues, formatToken)}
	case i.format == formatToken && i.hubURL != "":
		return usageError{fmt.Errorf("--hub-url does not apply to --output %s: it has no address", formatToken)}
	}
	return nil
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
	if err := i.checkFormat(); err != nil {
		return err
	}
	if i.ttl < 0 || i.most < 0 {
		return usageError{errors.New("--ttl and --max must not be negative; use 0 for no expiry, and for any number")}
	}
	hub, server, err := i.client()
	if err != nil {
		return err
	}
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace(), Name: name}, Spec: i.spec()}
	if err := i.ensure(ctx, hub, server, token); err != nil {
		return err
	}
	return i.printIssued(ctx, hub, token)
}

// printIssued prints the command of a token, once the hub has issued it. The facts of the token go
// to standard error.
func (i *issuer) printIssued(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken) error {
	secret, err := i.issued(ctx, hub, token)
	if err != nil {
		return err
	}
	config, err := i.ToRESTConfig()
	if err != nil {
		return i.explainConfig(err)
	}
	p := &prose{out: i.ErrOut}
	p.line("%s", i.facts(token))
	if p.err != nil {
		return p.err
	}
	return i.print(secret, config.Host)
}

// ensure creates a token, or checks the existing one.
func (i *issuer) ensure(ctx context.Context, hub client.Client, server string, token *fleet.ClusterRegistrationToken) error {
	want := token.Spec
	err := hub.Create(ctx, token)
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(token.Spec, want) {
			return fmt.Errorf("%s exists with other settings than these flags: choose another name, or see muster get tokens %s -o yaml",
				i.title(token), view.NameOf(token))
		}
		return nil
	case kube.NotServed(err):
		return i.remedy(err, nil, &fleet.ClusterRegistrationTokenList{}, server)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %s on %s: kubectl create namespace %s", token.Namespace, server, token.Namespace)
	case err != nil:
		return fmt.Errorf("creating %s: %w", i.title(token), err)
	}
	return nil
}

// issued waits for the Secret with the values of a token.
func (h *access) issued(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	var failed error // the hub retries
	err := wait.PollUntilContextTimeout(ctx, lookEvery, issuedWithin, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return false, err
		}
		if ready := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady); ready != nil && ready.Status == corev1.ConditionFalse {
			err := fmt.Errorf("%s cannot be used (%s): %s", h.title(token), ready.Reason, ready.Message)
			if ready.Reason != reasons.Failed {
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
	return nil, fmt.Errorf("%s has no values yet: check that the hub is running, and run muster explain tokens %s",
		h.title(token), view.NameOf(token))
}

func (i *issuer) print(secret *corev1.Secret, server string) error {
	values := bootstrap.ReadBootstrap(secret)
	if i.format == formatToken {
		_, err := fmt.Fprintln(i.Out, values.Token)
		return err
	}
	if values.APIServerURL == "" && i.hubURL == "" {
		fmt.Fprintf(i.ErrOut, "The hub does not know its own address (value apiServerURL of the chart fleet), so the command uses the address "+
			"in your kubeconfig: check that clusters reach it, or set --hub-url.\n")
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

// address returns the hub's address for clusters. Without a CA from the hub, the kubeconfig's
// CA counts.
func (i *issuer) address(values bootstrap.Bootstrap, server string) (url string, ca []byte) {
	url, ca = cmp.Or(i.hubURL, values.APIServerURL, server), []byte(values.APIServerCA)
	if len(ca) == 0 {
		if config, err := i.ToRESTConfig(); err == nil && rest.LoadTLSFiles(config) == nil { // read before
			ca = config.CAData
		}
	}
	return url, ca
}

// line returns the command to register a cluster.
func (i *issuer) line(token, url string, ca []byte) string {
	encoded := base64.StdEncoding.EncodeToString(ca)
	if i.format == formatCommand {
		return view.JoinCommand(token, url, ca, i.id)
	}
	return view.CommandLine("helm -n "+naming.SystemNamespace+" install --create-namespace --wait fleet-agent fleet/fleet-agent",
		"--set token=", token, "--set apiServerURL=", escaped(url), "--set apiServerCA=", encoded, "--set-string clientID=", escaped(i.id))
}

// escaped escapes a value for Helm's --set.
func escaped(value string) string { return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(value) }
