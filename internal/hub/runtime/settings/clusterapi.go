package settings

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ClusterAPI is the rule for the metadata of Clusters registered from Cluster API.
type ClusterAPI struct {
	// Labels and Annotations are the keys to copy from a cluster of Cluster API. A key that ends in /*
	// stands for all keys of its prefix.
	Labels, Annotations []string
	// ClassLabel is the key of the label with the name of the ClusterClass; empty for none.
	ClassLabel string
	// LeaveFirst is how long the deletion of a cluster of Cluster API waits until its member has left;
	// zero for not at all.
	LeaveFirst time.Duration
}

// maxClusterAPIKeys bounds the keys of each kind.
const maxClusterAPIKeys = 32

// The bounds of LeaveFirst.
const (
	minLeaveFirst = 10 * time.Second
	maxLeaveFirst = 24 * time.Hour
)

// Follows reports whether the hub reads the clusters of Cluster API.
func (c ClusterAPI) Follows() bool {
	return len(c.Labels) > 0 || len(c.Annotations) > 0 || c.ClassLabel != "" || c.LeaveFirst > 0
}

// wireClusterAPI is the form of ClusterAPI in the ConfigMap; missing fields mean the default.
type wireClusterAPI struct {
	Labels      []string        `json:"labels"`
	Annotations []string        `json:"annotations"`
	ClassLabel  string          `json:"classLabel"`
	LeaveFirst  metav1.Duration `json:"leaveFirst"`
}

func (w wireClusterAPI) parse() (ClusterAPI, error) {
	for field, keys := range map[string][]string{"labels": w.Labels, "annotations": w.Annotations} {
		if len(keys) > maxClusterAPIKeys {
			return ClusterAPI{}, fmt.Errorf("clusterAPI.%s: there are %d keys, want at most %d", field, len(keys), maxClusterAPIKeys)
		}
		for _, key := range keys {
			if prefix, all := strings.CutSuffix(key, "/*"); all {
				key = prefix + "/x"
			}
			if problems := validation.IsQualifiedName(key); len(problems) > 0 {
				return ClusterAPI{}, fmt.Errorf("clusterAPI.%s: %q is no key, and no prefix with /*: %s", field, key, problems[0])
			}
		}
	}
	if w.ClassLabel != "" {
		if problems := validation.IsQualifiedName(w.ClassLabel); len(problems) > 0 {
			return ClusterAPI{}, fmt.Errorf("clusterAPI.classLabel: %q is no key of a label: %s", w.ClassLabel, problems[0])
		}
	}
	if wait := w.LeaveFirst.Duration; wait != 0 && (wait < minLeaveFirst || wait > maxLeaveFirst) {
		return ClusterAPI{}, fmt.Errorf("clusterAPI.leaveFirst %s: want 0, or between %s and %s", wait, minLeaveFirst, maxLeaveFirst)
	}
	return ClusterAPI{Labels: w.Labels, Annotations: w.Annotations, ClassLabel: w.ClassLabel, LeaveFirst: w.LeaveFirst.Duration}, nil
}
