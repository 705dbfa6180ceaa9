// Package policy has no code, only tests: they hold the rules of this repository
// that no linter knows.
//
// Its invariant: a rule that is written down in CONTRIBUTING.md fails a test when it is broken.
package policy
