package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func newTokenList(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	list := newGet(streams, h)
	run := list.RunE
	list.Use, list.Short, list.Args = "list [NAME...]", "List the registration tokens", nil
	list.Long = `List the registration tokens, as "muster get tokens" does.`
	list.Example = "  muster token list --namespace clusters"
	list.ValidArgsFunction = h.completeNames(lookedFor{"muster token list", kindsNamed("tokens")})
	list.RunE = func(command *cobra.Command, args []string) error {
		return run(command, append([]string{"tokens"}, args...))
	}
	return list
}

func newTokenShow(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &issuer{IOStreams: streams, access: h}
	return i.ofToken(&cobra.Command{
		Use:   "show NAME",
		Short: "Print the command to join of an existing token",
		Long: `Print the command of a token again, as "muster token create" did. Keep the command to
yourself: anyone with the command can register a cluster.`,
		Example: `  muster token show clusters/web --output helm`,
	}, func(context.Context, client.Client, *fleet.ClusterRegistrationToken) error { return nil })
}

// ofToken completes a command that prints the command to join of an existing token, after another
// step.
func (i *issuer) ofToken(command *cobra.Command, before func(context.Context, client.Client, *fleet.ClusterRegistrationToken) error,
) *cobra.Command {
	name, _, _ := strings.Cut(command.Use, " ")
	looked := lookedFor{"muster token " + name, kindsNamed("tokens")}
	command.Args, command.ValidArgsFunction = takes(1, 1, "the name of a token"), i.completeNames(looked)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := i.checkFormat(); err != nil {
			return err
		}
		o, hub, err := i.subject(command.Context(), looked, args)
		if err != nil {
			return err
		}
		token := o.(*fleet.ClusterRegistrationToken)
		if err := before(command.Context(), hub, token); err != nil {
			return err
		}
		i.id = token.Spec.ClientID
		return i.printIssued(command.Context(), hub, token)
	}
	i.formatFlags(command)
	return i.acceptAllNamespaces(command)
}

func newTokenRevoke(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster token revoke", kindsNamed("tokens")}, timeout: time.Minute}
	yes := false
	command := c.command(&cobra.Command{
		Use:   "revoke NAME",
		Short: "Delete a registration token",
		Long: `Delete a registration token. No further cluster can register with it. Members that have
registered stay members: use "muster revoke" to end the access of a member.`,
		Example: `  muster token revoke clusters/web --yes`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if !yes {
			question := fmt.Sprintf("%s registers no further cluster after this.", c.title(o))
			if err := c.askFor(ctx, question, c.title(o), "use --yes to delete the token"); err != nil {
				return err
			}
		}
		uid := o.GetUID()
		if err := hub.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", c.title(o), err)
		}
		return c.follow(ctx, hub, o, "gone", func(_ client.Object, gone bool) (bool, error) { return gone, nil })
	})
	command.Flags().BoolVar(&yes, "yes", false, "Delete without a question")
	return command
}

// facts describes the purpose of a token, its expiry, and the use of the output.
func (i *issuer) facts(token *fleet.ClusterRegistrationToken) string {
	uses := "any number of clusters"
	if most := token.Spec.MaxRegistrations; most != nil {
		uses = fmt.Sprintf("%d %s", *most, strings.ToLower(plural("Cluster", int(*most))))
	}
	end := "without expiry"
	if expires := token.Status.Expires; expires != nil && !expires.IsZero() {
		end = "until " + expires.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("%s registers %s, %s", i.title(token), uses, end)
	if token.Spec.Approval == fleet.ApprovalManual {
		text += ", and each request needs an approval"
	}
	switch i.format {
	case formatCommand, formatHelm:
		return text + ". Run this on the cluster to register:"
	case formatValues:
		return text + ". These are the values of the chart fleet-agent:"
	}
	return text + "."
}
