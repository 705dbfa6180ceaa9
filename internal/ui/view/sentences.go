package view

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NoProblems is the sentence for an object without findings.
const NoProblems = "No problems found."

// Healthy returns the sentence for a number of members without problems.
func Healthy(total int) string {
	if total == 1 {
		return "The member is healthy."
	}
	return fmt.Sprintf("All %d members are healthy.", total)
}

// NoneFound returns the sentence for an empty list of objects.
func NoneFound(kind string) string { return "No " + kind + " found." }

// NoApprovalDue returns the message for a staged update run without a pending approval.
func NoApprovalDue(o client.Object) string {
	return fmt.Sprintf("%s does not wait for an approval, its state is %s", Title(o), State(o))
}

// NoConfirmationDue returns the sentence for an object without a held change.
func NoConfirmationDue(o client.Object) string { return Title(o) + " does not wait for a confirmation" }
