// Package reasons has the reasons of conditions and Events written by the hub, the agent and the
// deployer, one file for each kind of object.
//
// Its invariant: a reason is declared once, under its own value. A reason is wire format: add,
// never rename. Package explain has the cause and the remedy of each. Reasons from KubeFleet's API
// are in package api. The states of a state machine are in the package of the machine.
package reasons
