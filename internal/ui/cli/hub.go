package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
)

// hubber is the common part of the commands muster hub.
type hubber struct {
	changer
	yes   bool
	above int64
}

func newHub(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	command := &cobra.Command{
		Use:    "hub",
		Hidden: true, // for lack of room on the page: the help of muster restore names it
		Short:  "Show the term of a hub, promote it or demote it",
		Long: `A hub has a key and a term. A restored hub has the key of its backup and a higher term. Of two
hubs with the same key, members with Muster's agent obey the higher term. The other hub is
fenced: it changes nothing.`,
		Example: `  muster hub status --context hub`,
		Args:    takesCommand,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newHubStatus(streams, h), newHubPromote(streams, h), newHubDemote(streams, h), newStandbyToken(streams, h))
	return command
}

func newHubber(streams genericiooptions.IOStreams, h *access) *hubber {
	return &hubber{changer: changer{IOStreams: streams, access: h, timeout: time.Minute}}
}

func newHubStatus(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b, failing := newHubber(streams, h), false
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the key and the term of a hub, and whether it is fenced",
		Long: `Show the key and the term of a hub, and whether it works. A fenced hub has seen the proof of
another hub with the same key and a higher term. You need the right to read the Secret
` + naming.SystemNamespace + `/` + naming.HubIdentitySecret + `.`,
		Example: `  muster hub status

  # Fail unless the hub works
  muster hub status --exit-code`,
		Args:              takesNone,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), b.status(command.Context(), failing))
		},
	}
	command.Flags().BoolVar(&failing, "exit-code", false, "Exit with code 3 if the hub is fenced or demoted")
	return command
}

func newHubPromote(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b := newHubber(streams, h)
	command := &cobra.Command{
		Use:   "promote",
		Short: "Raise the term of a hub, so that members obey it and no other",
		Long: `Raise the term of a hub above its own term, and above the term of the hub that has fenced it.
Members of this hub then refuse every other hub with the same key, and the other hub stops
when it sees the proof. A fenced or demoted hub works again. The command waits until the hub has
started its controllers with the term. The exit code is 4 after --timeout.

Stop the other hub first, or demote it. Members that have joined the other hub keep obeying
it until they come back to this hub.`,
		Example: `  # Promote the hub without a question
  muster hub promote --context new-hub --yes

  # Promote it above the term of a hub that it has not met
  muster hub promote --context new-hub --above 7 --yes`,
		Args:              takesNone,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), b.change(command.Context(), "promote", func(i term.Identity) term.Identity {
				return i.Promote(b.above)
			}))
		},
	}
	command.Flags().Int64Var(&b.above, "above", 0, "Term of another hub, to exceed it too")
	command.Flags().DurationVar(&b.timeout, "timeout", b.timeout, "Time to wait until the hub uses the term; 0 to return at once")
	b.addYes(command)
	return command
}

func newHubDemote(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b := newHubber(streams, h)
	command := &cobra.Command{
		Use:   "demote",
		Short: "Stop a hub: it changes nothing until muster hub promote",
		Long: `Stop a hub. It registers no clusters, delivers nothing, and removes nothing. Members keep all
deliveries. Use it before a planned move to another hub. "muster hub promote" ends it.`,
		Example: `  muster hub demote --context hub --yes`,
		Args:    takesNone, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), b.change(command.Context(), "demote", func(i term.Identity) term.Identity {
				i.Demoted = true
				return i
			}))
		},
	}
	b.addYes(command)
	return command
}

func (b *hubber) addYes(command *cobra.Command) {
	command.Flags().BoolVar(&b.yes, "yes", false, "Change the hub without a question")
}

// hubIdentity is the identity of a hub with its Secret.
type hubIdentity struct {
	*checked
	term.Identity
	secret  *corev1.Secret
	cluster string
}

func (b *hubber) read(ctx context.Context) (found hubIdentity, err error) {
	if found.checked, err = b.checked(); err != nil {
		return found, err
	}
	if err := require(ctx, append(found.reachable()[:1], found.hubRuns()[0])); err != nil {
		return found, err
	}
	if found.cluster, err = found.clusterID(ctx); err != nil {
		return found, err
	}
	found.secret = &corev1.Secret{}
	err = found.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}, found.secret)
	switch {
	case apierrors.IsNotFound(err):
		return found, fmt.Errorf("the hub on %s has no term yet: a running hub of this version makes one; check its version with muster doctor",
			found.server)
	case err != nil:
		return found, fmt.Errorf("reading Secret %s/%s, the identity of the hub: %w", naming.SystemNamespace, naming.HubIdentitySecret, err)
	}
	if found.Identity, err = term.FromSecret(found.secret); err != nil {
		return found, fmt.Errorf("the Secret %s/%s is no identity of a hub: %w", naming.SystemNamespace, naming.HubIdentitySecret, err)
	}
	return found, nil
}

// state returns the state of a hub in one word.
func (i hubIdentity) state() string {
	switch {
	case i.Stopped(i.cluster) == "":
		return "Active"
	case i.Demoted:
		return "Demoted"
	}
	return "Fenced"
}

func (b *hubber) status(ctx context.Context, failing bool) error {
	hub, err := b.read(ctx)
	if err != nil {
		return err
	}
	p := newProse(b.Out)
	for _, row := range [][2]string{
		{"Server", hub.server}, {"Cluster", hub.cluster}, {"Key", hub.Fingerprint()}, {"Term", fmt.Sprint(hub.Term)}, {"State", hub.state()},
	} {
		p.line("%-8s %s", row[0], row[1])
	}
	if err := b.standbys(ctx, hub, &p); err != nil {
		return err
	}
	why := hub.Stopped(hub.cluster)
	if why != "" {
		p.line("")
		p.paragraph(0, "%s.", why)
	}
	if why != "" && failing && p.err == nil {
		return errNotWell
	}
	return p.err
}

// change writes another identity of the hub, after the answer of the user.
func (b *hubber) change(ctx context.Context, what string, edit func(term.Identity) term.Identity) error {
	hub, err := b.read(ctx)
	if err != nil {
		return err
	}
	p := newProse(b.Out)
	next := edit(hub.Identity)
	p.line("The hub at %s has term %d and is %s.", hub.server, hub.Term, hub.state())
	if next.Term == hub.Term && next.Demoted == hub.Demoted {
		return errors.Join(p.err, b.line("It is demoted already."))
	}
	if !b.yes {
		if err := b.askFor(ctx, fmt.Sprintf("Do you want to %s this hub?", what), "muster hub "+what, "use --yes"); err != nil {
			return err
		}
	}
	if err := hub.write(ctx, next); err != nil {
		return err
	}
	if next.Demoted {
		p.line("It is demoted now. It stops its controllers within seconds.")
		return p.err
	}
	p.line("It has term %d now. It starts its controllers again within seconds.", next.Term)
	if p.err != nil || b.timeout <= 0 {
		return p.err
	}
	return within(ctx, b.timeout, func(ctx context.Context) error { return b.awaitTerm(ctx, hub, next.Term) })
}

// write stores the next identity. It fails if the identity has changed since it was read. The hub
// may store the term in force at any time.
func (i *hubIdentity) write(ctx context.Context, next term.Identity) error {
	for {
		next.Fill(i.secret)
		err := i.Update(ctx, i.secret)
		if err == nil {
			return nil
		}
		if apierrors.IsConflict(err) {
			if now, unread := i.readAgain(ctx); unread == nil && now.SameExceptInForce(i.Identity) {
				next.InForce = now.InForce
				continue
			}
			return fmt.Errorf("the identity of the hub has changed meanwhile, and nothing is done: run the command again: %w", err)
		}
		return fmt.Errorf("writing Secret %s/%s, the identity of the hub: %w", naming.SystemNamespace, naming.HubIdentitySecret, err)
	}
}

func (i *hubIdentity) readAgain(ctx context.Context) (term.Identity, error) {
	i.secret = &corev1.Secret{}
	if err := i.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}, i.secret); err != nil {
		return term.Identity{}, err
	}
	return term.FromSecret(i.secret)
}

// awaitTerm waits until the hub has started its controllers with a term.
func (b *hubber) awaitTerm(ctx context.Context, hub hubIdentity, number int64) error {
	p := b.newProgress(b.Out)
	last := fmt.Sprintf("the hub at %s has not started its controllers with term %d", hub.server, number)
	unseen, err := await(ctx, &p, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(hub.secret), hub.secret); err != nil {
			return false, fmt.Errorf("reading Secret %s/%s, the identity of the hub: %w", naming.SystemNamespace, naming.HubIdentitySecret, err)
		}
		now, err := term.FromSecret(hub.secret)
		switch why := now.Stopped(hub.cluster); {
		case err != nil:
			return false, final{fmt.Errorf("the Secret %s/%s is no identity of a hub: %w", naming.SystemNamespace, naming.HubIdentitySecret, err)}
		case now.Term > number || why != "":
			return false, final{fmt.Errorf("the identity of the hub has changed again: it has term %d; see muster hub status", now.Term)}
		case now.InForce == number:
			p.step("the hub works with term %d", number)
			return true, nil
		}
		p.step("waiting until the hub starts its controllers with term %d", number)
		if why := hub.idleBecause(ctx); why != "" {
			p.step("the hub does not use term %d yet: %s", number, why)
			last = fmt.Sprintf("the hub at %s does not use term %d: %s", hub.server, number, why)
		}
		return false, nil
	})
	switch {
	case wait.Interrupted(err) && unseen != nil:
		return fmt.Errorf("%s: %w", last, errors.Join(unseen, err))
	case wait.Interrupted(err):
		return fmt.Errorf("%s: %w", last, err)
	case err != nil:
		return err
	}
	return p.err
}

// idleBecause returns the reason why no hub acts on the cluster; "" if one leads, or if that is
// unknown.
func (c *checked) idleBecause(ctx context.Context) string {
	cause, ready, err := c.causeOf(ctx, naming.SystemNamespace, hubDeployment)
	if err == nil && !ready && cause != nil {
		return cause.Message
	}
	if _, err := c.leader(ctx); err != nil && !errors.As(err, &notAsked{}) {
		return err.Error()
	}
	return ""
}
