package settings

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// LostMembers sets the treatment of members without heartbeats.
type LostMembers struct {
	// TaintAfter is the time from the last heartbeat to the taint; zero for no taint and no removal.
	TaintAfter time.Duration
	// RemoveAfter is the time from the taint to the removal; zero for no removal.
	RemoveAfter time.Duration
}

// The shortest times. They limit mistakes in the unit: no effect before users notice them.
const (
	minTaintAfter  = time.Hour
	minRemoveAfter = time.Minute
)

// maxQuoted bounds the quoted part of an invalid value.
const maxQuoted = 32

// wireLostMembers is the form of LostMembers in the ConfigMap; missing fields mean the default.
type wireLostMembers struct {
	TaintAfter  metav1.Duration `json:"taintAfter"`
	RemoveAfter metav1.Duration `json:"removeAfter"`
}

func (w wireLostMembers) parse() (LostMembers, error) {
	parsed := LostMembers{TaintAfter: w.TaintAfter.Duration, RemoveAfter: w.RemoveAfter.Duration}
	if after := parsed.TaintAfter; after != 0 && after < minTaintAfter {
		return LostMembers{}, fmt.Errorf("lostMembers.taintAfter %s: want 0 or at least %s", after, minTaintAfter)
	}
	if after := parsed.RemoveAfter; after != 0 && after < minRemoveAfter {
		return LostMembers{}, fmt.Errorf("lostMembers.removeAfter %s: want 0 or at least %s", after, minRemoveAfter)
	}
	if parsed.RemoveAfter > 0 && parsed.TaintAfter == 0 {
		return LostMembers{}, errors.New("lostMembers.removeAfter: set taintAfter, too, because a removal follows a taint")
	}
	return parsed, nil
}

// In returns the settings for the Clusters of a workspace, changed by the annotations of its
// Namespace. The problem describes an invalid annotation; the hub then does nothing.
func (l LostMembers) In(workspace metav1.Object) (changed LostMembers, problem string) {
	for annotation, setting := range map[string]struct {
		into  *time.Duration
		least time.Duration
	}{
		fleet.AnnotationLostTaintAfter:  {&l.TaintAfter, minTaintAfter},
		fleet.AnnotationLostRemoveAfter: {&l.RemoveAfter, minRemoveAfter},
	} {
		text, given := workspace.GetAnnotations()[annotation]
		if !given {
			continue
		}
		after, err := time.ParseDuration(text)
		if err != nil || after != 0 && after < setting.least {
			return LostMembers{}, fmt.Sprintf("annotation %s of Namespace %s is %q: want 0 or at least %s, in the form 720h; until then the hub "+
				"neither taints nor removes members of the workspace", annotation, workspace.GetName(), kube.Clip(text, maxQuoted), setting.least)
		}
		*setting.into = after
	}
	return l, ""
}
