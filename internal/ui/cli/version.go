package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
	"github.com/muster-fleet/muster/internal/version"
)

// versions is the command muster version, and its output as JSON.
type versions struct {
	genericiooptions.IOStreams `json:"-"`
	*access                    `json:"-"`
	format                     string
	clientOnly                 bool

	// Client and Hub are semantic versions. Hub is empty if it could not be read.
	Client string `json:"client"`
	Hub    string `json:"hub,omitempty"`
	// Agents are the numbers of members by the version of Muster's agent.
	Agents map[string]int `json:"agents,omitempty"`
	// Problems are unread versions and differences of minor versions.
	Problems []string `json:"problems,omitempty"`
}

func newVersion(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	v := &versions{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of muster, the hub and the agents",
		Long: `Show the versions of muster, of the hub, and of the agents of members with their number.
A warning names differences of more than a patch.`,
		Example: `  muster version

  # Only the version of this program, without a hub
  muster version --client`,
		Args:              takesNone,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return v.run(command.Context()) },
	}
	command.Flags().BoolVar(&v.clientOnly, "client", false, "Show only the version of this program")
	command.Flags().StringVarP(&v.format, "output", "o", "", "Output format: json; text by default")
	complete(command, "output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (v *versions) run(ctx context.Context) error {
	if v.format != "" && v.format != "json" {
		return usageError{fmt.Errorf("--output %s: use json, or leave the flag out", v.format)}
	}
	v.Client = version.Semantic(version.Version)
	if !v.clientOnly {
		v.readHub(ctx)
	}
	if v.format == "json" {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(v.Out, string(text))
		return err
	}
	p := newProse(v.Out)
	p.line("muster  %s", v.Client)
	if v.Hub != "" {
		p.line("hub     %s", v.Hub)
	}
	for _, of := range slices.Sorted(maps.Keys(v.Agents)) {
		p.line("agents  %s, on %d %s", of, v.Agents[of], plural("member", v.Agents[of]))
	}
	for _, problem := range v.Problems {
		p.paragraph(2, "  %s", problem)
	}
	return p.err
}

// readHub reads the versions of the hub and its agents. A failed read is a problem, not an error:
// the version of the program is known anyway.
func (v *versions) readHub(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	c, server, err := v.client()
	if err != nil {
		v.problem("The version of the hub is unknown: %s", err)
		return
	}
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: hubDeployment}, deployment); err != nil {
		v.problem("The version of the hub is unknown: %s", err)
	} else {
		v.Hub = tagOf(imageOfDeployment(deployment))
	}
	v.Agents = map[string]int{}
	_, refused, err := v.eachOfKind(ctx, c, server, kindsNamed("members")[0], func(o client.Object) {
		if of := view.AgentVersion(o); of != "" {
			v.Agents[version.Semantic(of)]++
		}
	}, client.InNamespace(*v.Namespace))
	if err = errors.Join(append(refused, err)...); err != nil {
		v.problem("The versions of the agents are unknown: %s", err)
	}
	v.compare()
}

// compare names the minor versions that differ from the hub's.
func (v *versions) compare() {
	if v.Hub == "" {
		return
	}
	switch differ(v.Hub, v.Client) {
	case 1:
		v.problem("The hub is newer than muster: use muster of the hub's version.")
	case -1:
		v.problem("The hub is older than muster: muster init upgrades the hub, or use muster of its version.")
	}
	for _, of := range slices.Sorted(maps.Keys(v.Agents)) {
		if differ(of, v.Hub) != 0 {
			v.problem("Agents of version %s differ from the hub: muster get -o wide shows them, and muster explain says why.", of)
		}
	}
}

func (v *versions) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}
