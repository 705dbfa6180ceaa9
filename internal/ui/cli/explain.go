package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownFindings bounds the findings of one object in text output.
const shownFindings = 10

// shownChanges bounds the changes in the history of one object.
const shownChanges = 5

// explainer is the command muster explain.
type explainer struct {
	genericiooptions.IOStreams
	*access
	format string
	// member is the context of the member, to check its agent there.
	member string
	// full adds all findings, the tree and the events.
	full bool
	// exitCode is set to report problems by the exit code.
	exitCode bool
}

func newExplain(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	e := &explainer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:     "explain [[" + strings.Join(kindNames(), "|") + "] NAME...]",
		Aliases: []string{"describe"},
		Short:   "Explain problems and their remedies",
		Long: `Explain the problems of a member, a registration request, a registration token, a Bundle,
a placement or a staged update run. Each problem has a cause, its meaning, and the commands
of its remedy. The likeliest cause comes first.

The explanation covers related objects too, such as the deployments on a Cluster. With
--member-context it also covers the agent on the member. Without a name, explain lists
the problems of all members, grouped by cause. The command changes nothing.

With --full, the explanation has all findings, the objects of a member as a tree, its
facts, and the events. "muster describe NAME" is "muster explain NAME --full".

With --exit-code, the exit code is 3 if there are problems.`,
		Example: `  # Explain the problems of the fleet
  muster explain

  # Explain one Cluster; the name alone is enough if it is unique
  muster explain clusters/web
  muster explain web

  # Explain two objects
  muster explain bundle/web cluster/web

  # Explain a pending or denied registration request
  muster explain requests clusters/request-x7k2p

  # Explain a waiting staged update run
  muster explain runs shop-v2

  # Also check the agent on the member
  muster explain web --member-context edge-1

  # Print the findings as JSON
  muster explain web --output json`,
		ValidArgsFunction: func(command *cobra.Command, args []string, so string) ([]string, cobra.ShellCompDirective) {
			among := explained()
			if len(args) == 0 {
				among = kinds[:1] // there may be many of the other kinds
			}
			return h.completeNames(lookedFor{"muster explain", among})(command, args, so)
		},
		RunE: func(command *cobra.Command, args []string) error {
			e.full = e.full || command.CalledAs() == "describe" && len(args) > 0
			return e.run(command.Context(), args)
		},
	}
	command.Flags().StringVarP(&e.format, "output", "o", "", "Output format: json for a list of findings; text by default")
	command.Flags().StringVar(&e.member, "member-context", "", "Context of the member, to check its agent there")
	command.Flags().BoolVar(&e.full, "full", false, "Add all findings, the objects and facts of a member, and the events")
	command.Flags().BoolVar(&e.exitCode, "exit-code", false, "End with exit code 3 if there are problems")
	complete(command, "output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	complete(command, "member-context", h.contexts)
	return h.acceptAllNamespaces(command)
}

func (e *explainer) run(ctx context.Context, args []string) error {
	if e.format != "" && e.format != "json" {
		return fmt.Errorf("--output %s: use json, or leave the flag out", e.format)
	}
	if e.full && (e.format != "" || len(args) == 0) {
		return usageError{errors.New("--full needs a name, and text output")}
	}
	if e.member != "" && (e.format != "" || len(args) == 0) {
		return errors.New("--member-context needs one member, and text output")
	}
	if len(args) == 0 {
		problems, err := e.fleet(ctx)
		return e.verdict(problems, err)
	}
	subjects, c, err := e.subjects(ctx, lookedFor{"muster explain", explained()}, args)
	if err != nil {
		return err
	}
	if e.member != "" && len(subjects) > 1 {
		return errors.New("--member-context needs one member, and text output")
	}
	return e.each(ctx, c, subjects)
}

// each explains objects one after the other.
func (e *explainer) each(ctx context.Context, c client.Client, subjects []client.Object) error {
	var reported []explain.Finding
	var notChecked []error
	for i, subject := range subjects {
		related, unseen := view.Related(ctx, c, subject)
		findings := explain.Of(append([]client.Object{subject}, related...)...)
		reported, notChecked = append(reported, findings...), append(notChecked, unseen...)
		if e.format == "json" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(e.Out)
		}
		err := e.print(subject, findings, unseen)
		if err == nil && e.full {
			err = e.printRest(ctx, c, subject)
		}
		if err != nil {
			return err
		}
	}
	problems := slices.ContainsFunc(reported, func(f explain.Finding) bool { return !f.Aside })
	switch {
	case e.format == "json":
		return e.verdict(problems, e.printJSON(reported, notChecked))
	case e.member != "":
		return e.verdict(problems, e.onMember(ctx))
	}
	return e.verdict(problems, nil)
}

// verdict returns the error of a command. With --exit-code, problems are an error.
func (e *explainer) verdict(problems bool, err error) error {
	if err == nil && e.exitCode && problems {
		return errNotWell
	}
	return err
}

// printRest prints the objects of a member as a tree, and the events of any object.
func (e *explainer) printRest(ctx context.Context, c client.Client, subject client.Object) error {
	if isMembers(e.kindOfObject(subject)) {
		fmt.Fprintln(e.Out)
		if err := (&tree{e.IOStreams, e.access}).print(view.Tree(ctx, c, subject)); err != nil {
			return err
		}
		if err := e.printFacts(subject); err != nil {
			return err
		}
	}
	fmt.Fprintln(e.Out)
	return (&eventLister{IOStreams: e.IOStreams, access: e.access}).of(ctx, c, subject)
}

// printFacts prints the facts that the agent of a member reports.
func (e *explainer) printFacts(member client.Object) error {
	facts := view.Facts(member)
	if len(facts) == 0 {
		return nil
	}
	fmt.Fprintln(e.Out)
	lines := printers.GetNewTabWriter(e.Out)
	if err := printers.WriteEscaped(lines, "FACT\tVALUE\n"); err != nil {
		return err
	}
	for _, fact := range facts {
		if err := printers.WriteEscaped(lines, cell(fact.Name, maxBetween)+"\t"+cell(fact.Value, maxCell)+"\n"); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// onMember prints the checks of the member's cluster and agent.
func (e *explainer) onMember(ctx context.Context) error {
	cluster, err := e.in(e.member, "cluster "+e.member).checked()
	if err != nil {
		return err
	}
	p := newProse(e.Out)
	p.line("")
	p.line("On cluster %s:", e.member)
	if p.err != nil {
		return p.err
	}
	_, err = runChecks(ctx, e.Out, append(cluster.reachable(), cluster.agentRuns()...))
	return err
}

// explained are the kinds for the search of a name: clusters and memberclusters are members.
func explained() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		return k.name == "clusters" || k.name == "memberclusters" || k.name == kindApprovals
	})
}

func (e *explainer) printJSON(findings []explain.Finding, unseen []error) error {
	for _, err := range unseen {
		fmt.Fprintf(e.ErrOut, "Not checked: %s\n", err)
	}
	if findings == nil {
		findings = []explain.Finding{}
	}
	text, err := json.MarshalIndent(findings, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Out, string(text))
	return err
}

func (e *explainer) print(subject client.Object, findings []explain.Finding, unseen []error) error {
	p := newProse(e.Out)
	wrong := slices.ContainsFunc(findings, func(f explain.Finding) bool { return !f.Aside })
	p.line("%s is %s.", e.title(subject), view.State(subject))
	if name := view.DisplayName(subject); name != "" {
		p.line("Display name: %s", name)
	}
	if description := view.Description(subject); description != "" {
		p.line("Description: %s", description)
	}
	if !wrong {
		p.line("%s", view.NoProblems)
	}
	alike := explain.Alike(findings)
	shown := alike
	if !e.full {
		shown = alike[:min(shownFindings, len(alike))]
	}
	advised := map[string]bool{}
	for _, f := range shown {
		advice := strings.Join(slices.Concat([]string{f.Means, f.Remedy}, f.OnHub, f.OnMember), "\n")
		if advised[advice] { // it stands above
			f.Means, f.Remedy, f.OnHub, f.OnMember = "", "", nil, nil
		}
		advised[advice] = true
		p.finding(f, f.Object() != e.title(subject))
	}
	if more := len(alike) - len(shown); more > 0 {
		p.line("")
		p.line("These are not all of the %d findings: use --output json for the full list.", len(findings))
	}
	if !e.full { // else the events have all of it
		p.history(view.HistoryOf(subject), time.Now())
	}
	for _, err := range unseen {
		p.line("")
		p.paragraph(2, "Not checked: %s", err)
	}
	return p.err
}

// history prints the last changes of a member, the newest last.
func (p *prose) history(entries []clusterv1beta1.HistoryEntry, now time.Time) {
	if len(entries) == 0 {
		return
	}
	recent := entries[max(0, len(entries)-shownChanges):]
	p.line("")
	p.line("History:")
	for i := range recent {
		entry := &recent[i]
		p.paragraph(31, "  %-8s %-19s %s", view.Since(entry.Last(), now)+" ago", entry.Reason, view.HistoryText(entry))
	}
}
