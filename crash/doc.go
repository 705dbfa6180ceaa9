// Package crash runs scenarios of the fleet with real programs on real control planes. It disturbs
// each scenario at one API call: it kills the calling program, answers with an error, breaks off
// the answer, or cuts the watches. The end state must equal the end state of an undisturbed run.
//
// The package stands alone, as bench does: it is about no single package, and no other package
// needs its tools. It has only tests. The ordinary one tries a few points, chosen by the printed
// seed; the flags try all of them:
//
//	go test ./crash -run TestPoints -v -timeout 3h -args -all -scenario join -fault kill
//
// docs/reliability.md lists the tried points and the results.
package crash
