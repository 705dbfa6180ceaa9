package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/nearest"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// lookedFor holds the command and the kinds of its argument.
type lookedFor struct {
	command string
	among   []kind
}

// kinds returns the accepted kinds. For members, either of its two kinds is accepted too.
func (l lookedFor) kinds() []kind {
	names := namesOf(l.among)
	if slices.Contains(names, "members") {
		names = append(names, "clusters", "memberclusters")
	}
	return kindsNamed(names...)
}

// named returns the kind for an argument. Other kinds are an error.
func (l lookedFor) named(said string) (kind, error) {
	k, known := kindOf(said)
	names := namesOf(l.kinds())
	switch {
	case !known:
		return kind{}, fmt.Errorf("%s is not a kind of objects: use one of %s", said, strings.Join(names, ", "))
	case !slices.Contains(names, k.name):
		return kind{}, fmt.Errorf("%s does not support %s: use one of %s", l.command, k.name, strings.Join(names, ", "))
	}
	return k, nil
}

// subject returns the object for the arguments: a name, or a kind and a name.
func (h *access) subject(ctx context.Context, looked lookedFor, args []string) (client.Object, client.Client, error) {
	if len(args) == 2 {
		k, err := looked.named(args[0])
		if err != nil {
			return nil, nil, err
		}
		looked.among, args = []kind{k}, args[1:]
	}
	c, server, err := h.client()
	if err != nil {
		return nil, nil, err
	}
	o, err := h.lookUpQualified(ctx, c, server, looked, args[0])
	return o, c, err
}

// subjects returns the objects for the arguments: names, or a kind and names.
func (h *access) subjects(ctx context.Context, looked lookedFor, args []string) ([]client.Object, client.Client, error) {
	if _, known := kindOf(args[0]); known && len(args) > 1 {
		k, err := looked.named(args[0])
		if err != nil {
			return nil, nil, err
		}
		looked.among, args = []kind{k}, args[1:]
	}
	c, server, err := h.client()
	if err != nil {
		return nil, nil, err
	}
	var objects []client.Object
	for i, name := range args {
		o, err := h.lookUpQualified(ctx, c, server, looked, name)
		if _, unknown := looked.named(name); err != nil && unknown != nil && i == 0 && len(args) > 1 && !strings.Contains(name, "/") {
			return nil, nil, fmt.Errorf("%w; %w", err, unknown) // a misspelled kind before a name
		}
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, o)
	}
	return objects, c, nil
}

// lookUpQualified finds the object of a name that may begin with its kind, as in
// cluster/clusters/web. A workspace with the name of a kind comes first.
func (h *access) lookUpQualified(ctx context.Context, c client.Client, server string, looked lookedFor, name string) (
	client.Object, error) {
	kindName, rest, ofKind := cutKind(name)
	if ofKind && strings.Contains(rest, "/") {
		k, err := looked.named(kindName)
		if err != nil {
			return nil, err
		}
		return h.lookUp(ctx, c, server, lookedFor{looked.command, []kind{k}}, rest)
	}
	o, err := h.lookUp(ctx, c, server, looked, name)
	if err == nil || !ofKind {
		return o, err
	}
	k, unsupported := looked.named(kindName)
	if unsupported != nil {
		return nil, err
	}
	if o, failed := h.lookUp(ctx, c, server, lookedFor{looked.command, []kind{k}}, rest); failed == nil {
		return o, nil
	}
	return nil, err
}

// cutKind cuts the kind off a name, in the form of muster or of kubectl: member/web,
// cluster.fleet.cattle.io/web.
func cutKind(name string) (kindName, rest string, ofKind bool) {
	first, rest, qualified := strings.Cut(name, "/")
	kindName, _, _ = strings.Cut(first, ".")
	_, known := kindOf(kindName)
	return kindName, rest, qualified && known
}

// qualifiedName returns the name of an object with its kind. All commands accept it.
func (h *access) qualifiedName(o client.Object) string {
	of := h.kindOfObject(o)
	if k, known := kindOf(of); known {
		of = k.aliases[0]
	}
	return of + "/" + view.NameOf(o)
}

// completeNames completes names of the command's kinds.
func (h *access) completeNames(looked lookedFor) cobra.CompletionFunc {
	return h.completeThose(looked, func(client.Object) bool { return true })
}

// completeThose completes the names of the objects the command can act on.
func (h *access) completeThose(looked lookedFor, these func(client.Object) bool) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		among := looked.among
		if len(args) == 1 {
			k, err := looked.named(args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			among = []kind{k}
		} else if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h.answersSoon()
		var all []string
		for _, k := range among {
			names, err := h.namesOfThose(command.Context(), these, client.InNamespace(*h.Namespace), k.lists(*h.Namespace)...)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			all = append(all, names...)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// lookUp finds the object of a name. Forbidden and unserved kinds are errors only if no other
// kind has the object.
func (h *access) lookUp(ctx context.Context, c client.Client, server string, looked lookedFor, name string) (client.Object, error) {
	namespace, bare, qualified := strings.Cut(name, "/")
	if !qualified {
		namespace, bare = *h.Namespace, name
	}
	var found []client.Object
	var forbidden, unserved []string
	var first error // the first kind not served
	listed := false
	for _, k := range looked.among {
		for _, list := range k.lists(namespace) {
			err := view.Each(ctx, c, list, func(o client.Object) { found = append(found, o) }, client.InNamespace(namespace),
				client.MatchingFields{"metadata.name": bare})
			switch {
			case apierrors.IsForbidden(err):
				forbidden = append(forbidden, h.nameOfKind(list))
			case kube.NotServed(err):
				unserved = append(unserved, h.nameOfKind(list))
				first = cmp.Or(first, h.remedy(err, k.namespaced, list, server))
			case err != nil:
				return nil, h.remedy(err, k.namespaced, list, server)
			default:
				listed = true
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%s is the name of %d objects; choose one:\n%s",
			name, len(found), strings.Join(h.choices(looked.command, found), "\n"))
	case len(unserved) > 0 && len(forbidden) == 0 && !listed:
		return nil, first
	}
	missing := ""
	if len(unserved) > 0 {
		missing = fmt.Sprintf("; %s serves no %s", server, strings.Join(unserved, ", "))
	}
	if len(forbidden) > 0 {
		if namespace == "" && slices.ContainsFunc(looked.among, func(k kind) bool { return len(k.namespaced) > 0 }) {
			missing += "; use --namespace for one workspace"
		}
		return nil, fmt.Errorf("there is no %s among what you may see; you may not list %s%s", name, strings.Join(forbidden, ", "), missing)
	}
	return nil, h.unknown(ctx, looked, namespace, name, missing)
}

// unknown returns the error for a missing object, with the unserved kinds.
func (h *access) unknown(ctx context.Context, looked lookedFor, namespace, name, missing string) error {
	var every []string
	for _, k := range looked.among {
		if names, err := h.names(ctx, client.InNamespace(namespace), k.lists(namespace)...); err == nil { // without names there is no suggestion
			every = append(every, names...)
		}
	}
	if k, isKind := kindOf(name); isKind {
		return fmt.Errorf("%s are a kind of objects: name one, as in %s %s NAME", k.name, looked.command, k.name)
	}
	return missingError{fmt.Errorf("there is no %s among the %s%s%s", name, strings.Join(namesOf(looked.among), ", "), missing,
		nearest.Question(name, every))}
}

// missingError is the error of an object that does not exist.
type missingError struct{ error }

func (m missingError) Unwrap() error { return m.error }

func isMissing(err error) bool { return errors.As(err, &missingError{}) }

// choices returns a command for each object.
func (h *access) choices(command string, objects []client.Object) []string {
	var commands []string
	for _, o := range objects {
		commands = append(commands, fmt.Sprintf("  %s %s %s", command, h.kindOfObject(o), view.NameOf(o)))
	}
	return commands
}

// kindOfObject returns the most specific table of an object.
func (h *access) kindOfObject(o client.Object) string {
	gvk, err := h.gvkOf(o)
	for _, k := range slices.Backward(kinds) {
		for _, list := range append(slices.Clone(k.namespaced), k.global...) {
			if of, unknown := h.gvkOf(list); err == nil && unknown == nil && of.Kind == gvk.Kind+"List" {
				return k.name
			}
		}
	}
	return ""
}

func namesOf(among []kind) []string {
	var names []string
	for _, k := range among {
		names = append(names, k.name)
	}
	return names
}

// title returns the kind and the name of an object.
func (h *access) title(o client.Object) string {
	gvk, err := h.gvkOf(o)
	if err != nil {
		return view.NameOf(o)
	}
	return gvk.Kind + " " + view.NameOf(o)
}

// because returns the problem of an object, for the end of a sentence.
func because(o client.Object) string {
	if said := view.Because(o); said != view.Nothing {
		return ": " + said
	}
	return ""
}
