// Package crash runs scenarios of the fleet with real programs on real control planes, and disturbs
// each at one API call: it kills the program that makes the call, or answers it with an error,
// breaks off its answer or cuts its watches. The end state has to be that of an undisturbed run.
//
// It is a package of its own, as bench is, because it is not about any one package and what it
// needs besides testkube nobody else does. It has only tests. The ordinary one tries a few points,
// which the printed seed chooses; the flags try all of them:
//
//	go test ./crash -run TestPoints -v -timeout 3h -args -all -scenario join -fault kill
//
// docs/reliability.md says what was tried and what came of it.
package crash
