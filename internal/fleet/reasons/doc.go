// Package reasons has the reasons of the conditions and Events that the hub, the agent and the
// deployer write, one file for each kind of object.
//
// Its invariant: a reason is declared once, under its own value. A reason is wire format: add,
// never rename. Package explain has the cause and the remedy of each. Reasons that the API of
// KubeFleet fixes are in package api, and the states of a state machine are where that machine is.
package reasons
