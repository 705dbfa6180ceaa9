package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/ui/view"
)

func newLabel(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h}
	looked := lookedFor{"muster label", kindsNamed("members")}
	return h.acceptAllNamespaces(&cobra.Command{
		Use:   "label [clusters|memberclusters] NAME KEY=VALUE|KEY-...",
		Short: "Set or remove labels of a member",
		Long: `Set labels of a member, or remove labels with KEY-. Bundles and placements with a matching
selector follow at once.

A registration token can stamp labels. Registration with the token sets them again.`,
		Example: `  # Set two labels
  muster label clusters/web env=prod region=eu

  # Remove a label
  muster label edge-1 region-`,
		Args: takes(2, 0, "the name of a member and a label"),
		ValidArgsFunction: func(command *cobra.Command, args []string, so string) ([]string, cobra.ShellCompDirective) {
			return h.completeNames(looked)(command, args, so)
		},
		RunE: func(command *cobra.Command, args []string) error {
			subject, changes := labelled(args)
			labels, err := labelsOf(changes)
			if err != nil {
				return err
			}
			o, hub, err := h.subject(command.Context(), looked, subject)
			if err != nil {
				return err
			}
			if err := c.patch(command.Context(), hub, o, "labels", labels); err != nil {
				return err
			}
			var has []string
			for _, key := range slices.Sorted(maps.Keys(o.GetLabels())) {
				has = append(has, key+"="+o.GetLabels()[key])
			}
			return c.line("%s has the labels %s", h.title(o), view.Or(strings.Join(has, ", ")))
		},
	})
}

// labelled splits the arguments into the member, a name or a kind and a name, and its labels.
func labelled(args []string) (subject, labels []string) {
	if _, isKind := kindOf(args[0]); isKind && !strings.Contains(args[1], "=") && !strings.HasSuffix(args[1], "-") {
		return args[:2], args[2:]
	}
	return args[:1], args[1:]
}

// labelsOf returns the labels to set; nil removes one.
func labelsOf(changes []string) (map[string]any, error) {
	if len(changes) == 0 {
		return nil, errors.New("no label given: use KEY=VALUE to set one, or KEY- to remove one")
	}
	labels := map[string]any{}
	for _, text := range changes {
		key, value, set := strings.Cut(text, "=")
		switch {
		case set:
			labels[key] = value
		case strings.HasSuffix(text, "-"):
			labels[strings.TrimSuffix(text, "-")] = nil
		default:
			return nil, fmt.Errorf("%s is not a label: use KEY=VALUE to set one, or KEY- to remove one", text)
		}
	}
	return labels, nil
}
