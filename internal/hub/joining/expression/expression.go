// Package expression evaluates the CEL expressions of ClusterRegistrationTokens for approving
// requests.
//
// Expression reads and writes nothing. Its invariant: an evaluation takes bounded time for every
// expression, and only the value true approves a request. An invalid or failing expression approves
// nothing.
package expression

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"

	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxLength is the maximum length of the field in the CRD, in characters.
	maxLength = 1024
	// costLimit bounds the cost of an evaluation, in CEL's own units. A processor handles some ten
	// million units a second.
	costLimit = 100_000
	// maxShown bounds the quote of an expression or an error in a message.
	maxShown = 512
)

// Request holds the variables of an expression.
type Request struct {
	// Labels are the labels of the Cluster after a grant of the request.
	Labels map[string]string
	// ClientID is spec.clientID; Key is the fingerprint of the agent's key, "" without one.
	ClientID, Key string
	// Requester is the user behind the request; "" if uncertain.
	Requester string
	// Native: the request is from Muster's agent.
	Native bool
}

// largest holds the sizes for the cost estimate of an expression. An evaluation with a greater
// cost, because a Cluster has more labels, ends with an error.
var largest = map[string]uint64{
	"labels": 256, "labels/@keys": 317, "labels/@values": 63, "clientID": 4096, "key": 32, "requester": 512,
}

// environment declares the variables. It is created at its first use, because most hubs evaluate no
// expression.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.OptionalTypes(),
		cel.ParserExpressionSizeLimit(maxLength),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("clientID", cel.StringType),
		cel.Variable("key", cel.StringType),
		cel.Variable("requester", cel.StringType),
		cel.Variable("native", cel.BoolType),
	)
})

// Expression is a compiled expression.
type Expression struct {
	text    string
	program cel.Program
}

// Compile checks an expression. The error is a sentence for the author of the token.
func Compile(text string) (Expression, error) {
	if n := len([]rune(text)); n > maxLength {
		return Expression{}, fmt.Errorf("it has %d characters, at most %d are allowed", n, maxLength)
	}
	if strings.TrimSpace(text) == "" {
		return Expression{}, fmt.Errorf("it is empty: write one such as labels[?'env'].orValue('') == 'dev', or choose another spec.approval")
	}
	env, err := environment()
	if err != nil {
		return Expression{}, fmt.Errorf("preparing the evaluation of expressions: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return Expression{}, fmt.Errorf("it does not compile: %s", describe(issues))
	}
	if is := ast.OutputType(); !is.IsExactType(cel.BoolType) {
		return Expression{}, fmt.Errorf("it returns %s: want true or false (bool)", is)
	}
	cost, err := env.EstimateCost(ast, sizes{})
	if err != nil {
		return Expression{}, fmt.Errorf("estimating its cost: %w", err)
	}
	if cost.Max > costLimit {
		return Expression{}, fmt.Errorf("it may cost up to %d, at most %d is allowed: avoid macros such as all and exists inside of one "+
			"another, and matches in them", cost.Max, costLimit)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return Expression{}, fmt.Errorf("it cannot be evaluated: %s", kube.Clip(err.Error(), maxShown))
	}
	return Expression{text: text, program: program}, nil
}

// Approves reports whether the expression is true for a request, or else returns the cause.
func (e Expression) Approves(r Request) (approved bool, why string) {
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	result, _, err := e.program.Eval(map[string]any{
		"labels": labels, "clientID": r.ClientID, "key": r.Key, "requester": r.Requester, "native": r.Native,
	})
	shown := kube.Clip(e.text, maxShown)
	if err != nil {
		return false, fmt.Sprintf("%s fails for this request (%s; a label that may be missing is written labels[?'env'].orValue(''))",
			shown, kube.Clip(err.Error(), maxShown))
	}
	if yes, ok := result.Value().(bool); !ok || !yes {
		return false, shown + " is false for this request"
	}
	return true, ""
}

// describe returns the faults in one line.
func describe(issues *cel.Issues) string {
	var said []string
	for _, e := range issues.Errors() {
		said = append(said, fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1,
			strings.Join(strings.Fields(e.Message), " ")))
	}
	return kube.Clip(strings.Join(said, "; "), maxShown)
}

// sizes gives CEL the maximum sizes of the variables.
type sizes struct{}

// EstimateSize returns the largest size of a variable, or of its elements; nil for all other nodes.
func (sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	most, known := largest[strings.Join(node.Path(), "/")]
	if !known {
		return nil
	}
	return &checker.SizeEstimate{Max: most}
}

// EstimateCallCost leaves the cost of functions to CEL.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
