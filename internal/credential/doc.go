// Package credential transfers identities from the hub to agents.
//
// Its invariant: a credential leaves the hub only sealed to a key, and only the requesting agent
// has its private half. For upstream agents without such a key, the credential is in the one Secret
// that they poll.
package credential
