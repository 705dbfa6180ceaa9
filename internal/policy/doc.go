// Package policy contains only tests. They enforce the rules of this repository, as far as no
// linter does.
//
// Its invariant: a broken rule of CONTRIBUTING.md fails a test.
package policy
