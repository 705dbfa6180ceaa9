package templates

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxWork limits the work for the templates of one Cluster's values. The unit is a byte read
	// or written; slower work counts as more bytes.
	maxWork = 16 << 20
	// perValue is the cost of a value besides its text. perStep is the cost of one pass through
	// the body of a range besides its length.
	perValue, perStep = 16, 64
	// perComparison is the cost of comparing two texts of any length.
	perComparison = 4000
	// perMatch is the cost of a byte matched against a regular expression, and the most states of
	// an expression.
	perMatch = 1000
	// maxExpression limits the length of a regular expression, maxDepth the nesting of lists and
	// dicts.
	maxExpression, maxDepth = 1 << 10, 64
	// maxWidth is the greatest width and precision accepted by fmt.
	maxWidth = 1e6
)

var (
	errAllowance = errors.New("the templates would take more work than the hub does for them: use shorter texts, lists, ranges and " +
		"repetitions")
	errResult = fmt.Errorf("the result is longer than %d bytes", maxResult)
	errDepth  = fmt.Errorf("lists and dicts lie in each other more than %d deep", maxDepth)
)

// allowance is the remaining work.
type allowance struct{ left float64 }

func (a *allowance) spend(work float64) error {
	if a.left -= work; a.left < 0 {
		return errAllowance
	}
	return nil
}

// measure returns the size of a value, or an error if the value is too large or too deep.
func (a *allowance) measure(v reflect.Value, depth int) (float64, error) {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if depth > maxDepth {
		return 0, errDepth
	}
	size := float64(perValue)
	add := func(part reflect.Value) error {
		more, err := a.measure(part, depth+1)
		if size += more; err == nil && size > a.left {
			err = errAllowance
		}
		return err
	}
	switch v.Kind() {
	case reflect.String:
		size += float64(v.Len())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := add(v.Index(i)); err != nil {
				return 0, err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if err := errors.Join(add(entries.Key()), add(entries.Value())); err != nil {
				return 0, err
			}
		}
	default: // values of other kinds hold no others
	}
	return size, nil
}

// bound wraps a function: the wrapper pays for the arguments before the call, and for the result
// after it.
func (a *allowance) bound(name string, function reflect.Value) any {
	t := function.Type()
	var parameters []reflect.Type
	for i := range t.NumIn() {
		parameters = append(parameters, t.In(i))
	}
	fault := reflect.TypeFor[error]()
	signature := reflect.FuncOf(parameters, []reflect.Type{t.Out(0), fault}, t.IsVariadic())
	return reflect.MakeFunc(signature, func(given []reflect.Value) []reflect.Value {
		failed := func(err error) []reflect.Value {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		if err := a.pay(name, given); err != nil {
			return failed(err)
		}
		unshare(name, given)
		call := function.Call
		if t.IsVariadic() {
			call = function.CallSlice
		}
		results := call(given)
		if len(results) > 1 && !results[1].IsNil() {
			return results
		}
		size, err := a.measure(results[0], 0)
		if err == nil && results[0].Kind() == reflect.String && results[0].Len() > maxResult {
			err = errResult
		}
		if err == nil {
			err = a.spend(size)
		}
		if err != nil {
			return failed(err)
		}
		return []reflect.Value{results[0], reflect.Zero(fault)}
	}).Interface()
}

// pay spends the highest possible cost of a call, before the call.
func (a *allowance) pay(name string, given []reflect.Value) error {
	size := 0.0
	for _, one := range given {
		more, err := a.measure(one, 0)
		if err != nil {
			return err
		}
		size += more
	}
	if strings.Contains(strings.ToLower(name), "regex") && text(given, 0) > maxExpression {
		return fmt.Errorf("a regular expression may be %d bytes long", maxExpression)
	}
	return a.spend(size + cost(name, given, size))
}

// cost returns the cost of a call besides reading its arguments and writing a result of a similar
// size.
func cost(name string, given []reflect.Value, size float64) float64 {
	switch strings.TrimPrefix(strings.ToLower(name), "must") {
	case "repeat":
		return number(given, 0) * text(given, 1)
	case "indent", "nindent":
		return number(given, 0) * (size + 1)
	case "until":
		return number(given, 0) * perValue
	case "untilstep":
		return (number(given, 0) + number(given, 1)) * perValue
	case "seq":
		return size + sum(given)*perValue
	case "replace":
		return (text(given, 2) + 1) * text(given, 1)
	case "join":
		return size * text(given, 0)
	case "wrapwith":
		return size * (text(given, 1) + 1)
	case "regexreplaceall", "regexreplaceallliteral":
		return perMatch*size + (text(given, 1)+1)*(text(given, 2)+1)
	case "regexmatch", "regexfind", "regexfindall", "regexsplit":
		return perMatch * size
	case "printf":
		return widths(given) + size*text(given, 0)
	case "uniq", "without", "has":
		return size * size / perValue // compares each pair
	case "split", "splitlist", "splitn", "fromjson", "toprettyjson":
		return size * maxDepth
	case "html", "js", "urlquery":
		return size * 6
	}
	return 0
}

func at(given []reflect.Value, i int) reflect.Value {
	if i >= len(given) {
		return reflect.Value{}
	}
	v := given[i]
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// number returns the absolute value of the i-th argument; text returns its length.
func number(given []reflect.Value, i int) float64 {
	if v := at(given, i); v.IsValid() && v.CanInt() {
		return max(float64(v.Int()), -float64(v.Int()))
	}
	return 0
}

func text(given []reflect.Value, i int) float64 {
	if v := at(given, i); v.IsValid() && v.Kind() == reflect.String {
		return float64(v.Len())
	}
	return 0
}

// sum adds up whole numbers without their signs, also the numbers in variadic arguments.
func sum(given []reflect.Value) (total float64) {
	for i := range given {
		v := at(given, i)
		if total += number(given, i); v.IsValid() && v.Kind() == reflect.Slice {
			parts := make([]reflect.Value, v.Len())
			for j := range parts {
				parts[j] = v.Index(j)
			}
			total += sum(parts)
		}
	}
	return total
}

var digits = regexp.MustCompile(`[0-9]+`)

// widths returns the number of characters added at most by the widths in a format.
func widths(given []reflect.Value) (total float64) {
	v := at(given, 0)
	if !v.IsValid() || v.Kind() != reflect.String {
		return 0
	}
	for _, found := range digits.FindAllString(v.String(), -1) {
		width, err := strconv.ParseFloat(found, 64)
		if err != nil || width > maxWidth {
			width = maxWidth
		}
		total += width
	}
	return total + float64(strings.Count(v.String(), "*"))*min(sum(given[1:]), maxWidth)
}

// unshare copies the dicts passed to functions with side effects, so no dict contains itself.
func unshare(name string, given []reflect.Value) {
	switch {
	case name == "set":
		given[2] = clone(given[2])
	case strings.HasPrefix(strings.ToLower(strings.TrimPrefix(name, "must")), "merge"):
		given[1] = clone(given[1])
	}
}

// clone copies dicts and lists at any depth.
func clone(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		copied := reflect.New(v.Type()).Elem()
		copied.Set(clone(v.Elem()))
		return copied
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		copied := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			copied.SetMapIndex(entries.Key(), clone(entries.Value()))
		}
		return copied
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			copied.Index(i).Set(clone(v.Index(i)))
		}
		return copied
	default:
		return v
	}
}
