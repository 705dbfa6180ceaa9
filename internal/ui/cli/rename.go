package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func newRename(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h}
	looked := lookedFor{"muster rename", kindsNamed("members")}
	description := ""
	command := &cobra.Command{
		Use:   "rename [clusters|memberclusters] NAME DISPLAY-NAME",
		Short: "Give a member a display name",
		Long: `Give a member a display name for people. The name of the Cluster or MemberCluster stays as it
is, and commands take only that name. An empty display name removes it.

The display name and the description are the annotations ` + fleet.AnnotationDisplayName + ` and
` + fleet.AnnotationDescription + `.`,
		Example: `  # Give a member a display name and a description
  muster rename clusters/web "Web shop" --description "Frankfurt, rack 7; call the shop team first"

  # Remove the display name
  muster rename clusters/web ""`,
		Args:              takes(2, 3, "the name of a member and a display name"),
		ValidArgsFunction: h.completeNames(looked),
		Hidden:            true, // for lack of room on the page
		RunE: func(command *cobra.Command, args []string) error {
			subject, name := args[:len(args)-1], args[len(args)-1]
			o, hub, err := h.subject(command.Context(), looked, subject)
			if err != nil {
				return err
			}
			annotations := map[string]any{fleet.AnnotationDisplayName: orNull(name)}
			if command.Flags().Changed("description") {
				annotations[fleet.AnnotationDescription] = orNull(description)
			}
			if err := c.patch(command.Context(), hub, o, "annotations", annotations); err != nil {
				return err
			}
			if name == "" {
				return c.line("%s has no display name.", h.title(o))
			}
			return c.line("%s has the display name %q.", h.title(o), name)
		},
	}
	command.Flags().StringVar(&description, "description", "", "Description of the member; empty removes it")
	return h.acceptAllNamespaces(command)
}

// orNull returns a text for a patch: nil removes an empty one.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
