package explain

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// wordCause explains words of Kubernetes in the message about an object.
type wordCause struct {
	words         []string
	means, remedy string
	onMember      []string
}

const (
	memberEvents = "kubectl get events -A --sort-by .lastTimestamp"
	memberPodLog = "kubectl -n <namespace> logs <pod> --previous"
)

// notReady has the reasons of applied but unready objects.
var notReady = []string{string(fleet.StateNotReady), reasons.ManifestNotAvailableYet, reasons.ManifestFailed}

// notDeployed has the reasons of objects that the API server of the member does not accept.
var notDeployed = []string{
	reasons.Error, reasons.DeployFailed, reasons.CorrectionFailed, string(fleet.StateErrApplied), reasons.ManifestNotApplied,
	"ManifestApplyFailed", reasons.ImmutableField, reasons.Forbidden, reasons.QuotaExceeded, reasons.Rejected,
}

// workloadCauses are in the order of the search: the more exact words first.
var workloadCauses = []wordCause{
	{
		words: []string{
			"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable",
			"SignatureValidationFailed",
		},
		means: "A node of the member cannot pull the image of a container.",
		remedy: "Correct the name or the tag of the image. A private registry needs an imagePullSecret in the Pod or its " +
			"service account. If the member cannot reach the registry, use a mirror.",
		onMember: []string{memberEvents},
	},
	{
		words: []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"},
		means: "A node of the member cannot create a container.",
		remedy: "The message names the reason. Often the container uses a Secret, a ConfigMap or a key that does not exist: " +
			"deliver it with the workload.",
		onMember: []string{memberEvents},
	},
	{
		words:    []string{"OOMKilled"},
		means:    "The kernel killed a container because it exceeded its memory limit.",
		remedy:   "Raise the memory limit of the container, or reduce the memory use of the application.",
		onMember: []string{memberPodLog},
	},
	{
		words: []string{"exceeded quota"},
		means: "A ResourceQuota of the namespace on the member refuses the Pods.",
		remedy: "Raise the quota, or request less. Pods without requests and limits are refused if the quota counts " +
			"them.",
		onMember: []string{"kubectl get resourcequotas -A"},
	},
	{
		words: []string{"FailedCreate", "Error creating: "},
		means: "The API server of the member refuses to create the Pods.",
		remedy: "The message quotes the refusal: an admission webhook, Pod Security, a quota, or a missing service account. " +
			"Correct the Pod template, or the policy of the member.",
		onMember: []string{memberEvents},
	},
	{
		words: []string{"PersistentVolumeClaim ", "PVC is not Bound"},
		means: "A PersistentVolumeClaim is not bound, so its Pods do not start.",
		remedy: "Check its storage class on the member, and the provisioner. With WaitForFirstConsumer it is bound after a node " +
			"takes the first Pod.",
		onMember: []string{"kubectl get persistentvolumeclaims,storageclasses -A"},
	},
	{
		words:    []string{"Unschedulable", "SchedulingGated"},
		means:    "No node of the member fits a Pod.",
		remedy:   "The message names the missing resource, taint or label. Add a node, or change the requests or rules of the Pod.",
		onMember: []string{"kubectl describe nodes"},
	},
	{
		words:    []string{"CrashLoopBackOff", "exit code "},
		means:    "A container starts and ends with an error.",
		remedy:   "The message has the exit code, and the last line of the termination message if there is one. Read the log.",
		onMember: []string{memberPodLog},
	},
	{
		words:    []string{"may not be read: "},
		means:    "An object is not ready. The account of the deployment has no right to read the Pods, so the cause is unknown.",
		remedy:   "Grant the account the right to get and list Pods, ReplicaSets, PersistentVolumeClaims and Events in the namespace.",
		onMember: []string{"kubectl get pods -A --field-selector status.phase!=Running", memberEvents},
	},
}

// refusalCauses are in the order of the search: the more exact words first.
var refusalCauses = []wordCause{
	{
		words: []string{"no matches for kind"},
		means: "The member does not serve the API version of an object in the message.",
		remedy: "For a kind of Kubernetes, use a version that the member serves. For a custom kind, deliver its " +
			"CustomResourceDefinition first, for example with another Bundle in dependsOn.",
		onMember: []string{"kubectl api-resources"},
	},
	{
		words: []string{"field is immutable", "is immutable after creation", "updates to statefulset spec for fields other than"},
		means: "A change concerns a field that Kubernetes never changes in an existing object.",
		remedy: "Restore the field, or give the object a new name. If the object may be interrupted, delete it on the member: the " +
			"agent then creates it with the new value.",
	},
	{
		words:    []string{"field not declared in schema", "unknown field ", "failed to create typed patch object", "cannot unmarshal "},
		means:    "A manifest has a field unknown to the API server of the member, or a value of another type.",
		remedy:   "Correct the field in the message. A later version of Kubernetes, or of the CustomResourceDefinition, may have it.",
		onMember: []string{"kubectl explain KIND.spec --recursive"},
	},
	{
		words: []string{"failed calling webhook", "failed to call webhook"},
		means: "An admission webhook on the member does not answer, so its API server refuses the object.",
		remedy: "Repair the webhook in the message: its Pods, Service and certificate. If its program is gone, delete its " +
			"configuration.",
		onMember: []string{"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	},
	{
		words:    []string{"denied the request", "ValidatingAdmissionPolicy ", "violates PodSecurity"},
		means:    "A policy of the member refuses an object.",
		remedy:   "Change the object as the message says, or ask the owner of the policy for an exception.",
		onMember: []string{"kubectl get validatingwebhookconfigurations,validatingadmissionpolicies"},
	},
	{
		words:    []string{"exceeded quota"},
		means:    "A ResourceQuota of the namespace on the member refuses an object.",
		remedy:   "Raise the quota, or delete objects that count towards it.",
		onMember: []string{"kubectl get resourcequotas -A"},
	},
	{
		words: []string{
			"cannot get resource", "cannot list resource", "cannot create resource", "cannot patch resource", "cannot update resource",
			"attempting to grant RBAC permissions not currently held",
		},
		means:    "The account of the delivery lacks a right on the member.",
		remedy:   "Grant the account in the message this right there, or choose another account with serviceAccount.",
		onMember: []string{"kubectl auth can-i --list --as system:serviceaccount:<namespace>:<account>"},
	},
}

// refined returns the cause for the words of Kubernetes in the message about an object.
func (c cause) refined(p Problem) cause {
	var causes []wordCause
	switch {
	case slices.Contains(notReady, p.Reason):
		causes = workloadCauses
	case slices.Contains(notDeployed, p.Reason):
		causes = refusalCauses
	}
	for _, w := range causes {
		if slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(p.Message, word) }) {
			c.means, c.remedy, c.onHub, c.onMember = w.means, w.remedy, nil, w.onMember
			return c
		}
	}
	return c
}

// writeWords writes the causes by words of Kubernetes.
func writeWords(page *strings.Builder) {
	page.WriteString("\n## Objects that are not ready\n\n" +
		"The message of NotReady, ManifestNotAvailableYet and ManifestFailed has the cause in the words of Kubernetes.\n")
	writeWordCauses(page, workloadCauses)
	page.WriteString("\n## Objects that a member refuses\n\n" +
		"The message of DeployFailed, ErrApplied and ManifestApplyFailed has the cause in the words of Kubernetes.\n")
	writeWordCauses(page, refusalCauses)
}

func writeWordCauses(page *strings.Builder, causes []wordCause) {
	for _, w := range causes {
		var words []string
		for _, word := range w.words {
			words = append(words, strings.TrimRight(word, ": "))
		}
		fmt.Fprintf(page, "\n### %s\n\n%s %s\n", strings.Join(words, ", "), w.means, w.remedy)
		if len(w.onMember) > 0 {
			fmt.Fprintf(page, "\nOn the member:\n\n    %s\n", strings.Join(w.onMember, "\n    "))
		}
	}
}
