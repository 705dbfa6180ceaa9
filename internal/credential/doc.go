// Package credential is how an identity travels from the hub to an agent.
//
// Its invariant: a credential leaves the hub only sealed to a key whose private half the asking agent alone has, or, for
// upstream agents that have no such key, in the one Secret that they poll for.
package credential
