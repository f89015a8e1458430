package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is a changed file.
type mutant struct {
	pkg, file string
	line      int
	what      string
	source    []byte
	order     float64 // those with a smaller one are tried first
}

var (
	// unimportant matches lines without a rule: logs, metrics, traces, messages, errors of other calls, and the sizes of buffers.
	unimportant = regexp.MustCompile(`(?i)\blog\b|logger|metric|trace|span|observer|errors\.New|Errorf|err [!=]= nil|return (true|false), err|\.Inc\(|make\(|` +
		`\.(R?Lock|R?Unlock|Close|Stop|Done|Wait|Go|Grow|WriteString|Error|Info|Warn|Debug)\(|cancel|wake|notify|time\.(Second|Minute|Hour|Millisecond)`)
	// money matches the names of files with a rule about money. Their lines are drawn three times as often as others.
	money = regexp.MustCompile(`invoice/|amount|apply|attempt|breaker|budget|candidate|claim|confirm|create|decide|deposit|fee|gas|judge|lease|match|` +
		`nonce|pay|refund|remainder|replace|schedule|settle|status|sum|sweep|tolerance|void`)
)

// draw returns changes in the order in which to try them, one of each line.
func draw(o options) (drawn []mutant, err error) {
	random := rand.New(rand.NewPCG(o.seed, 0)) //nolint:gosec // a seeded choice
	for _, pkg := range slices.Sorted(maps.Keys(shares)) {
		paths, err := filepath.Glob(pkg + "/*.go")
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			lines, err := mutants(pkg, path)
			if err != nil {
				return nil, err
			}
			weight := 1.0
			if money.MatchString(path) {
				weight = 3
			}
			for _, number := range slices.Sorted(maps.Keys(lines)) {
				m := lines[number][random.IntN(len(lines[number]))]
				m.order = -math.Pow(random.Float64(), 1/weight)
				if o.at == "" {
					drawn = append(drawn, m)
				} else if slices.Contains(strings.Split(o.at, ","), fmt.Sprintf("%s:%d", path, number)) {
					drawn = append(drawn, lines[number]...)
				}
			}
		}
	}
	slices.SortStableFunc(drawn, func(a, b mutant) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
	return drawn, nil
}

// mutants returns the changes of a file that are worth a test, by line.
func mutants(pkg, path string) (map[int][]mutant, error) {
	source, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil || strings.HasSuffix(path, "_test.go") {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, 0)
	if err != nil {
		return nil, err
	}
	lines, found := bytes.Split(source, []byte("\n")), map[int][]mutant{}
	replace := func(from, to token.Pos, text, what string) {
		p := set.Position(from)
		if unimportant.Match(lines[p.Line-1]) {
			return
		}
		changed := slices.Concat(source[:p.Offset], []byte(text), source[set.Position(to).Offset:])
		found[p.Line] = append(found[p.Line], mutant{pkg: pkg, file: path, line: p.Line, what: what, source: changed})
	}
	text := func(n ast.Node) string {
		return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil {
			change(n, text, replace)
		}
		_, imported := n.(*ast.ImportSpec)
		return !imported
	})
	return found, nil
}

// swaps are what replaces an operator or a constant.
var swaps = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=",
	"true": "false", "false": "true",
}

// change calls replace with each change of a node, not of the nodes below it.
func change(n ast.Node, text func(ast.Node) string, replace func(from, to token.Pos, text, what string)) {
	code := strings.Join(strings.Fields(text(n)), " ")
	if runes := []rune(code); len(runes) > 44 {
		code = string(runes[:44]) + "…"
	}
	swap := func(at token.Pos, old string) {
		if swapped, ok := swaps[old]; ok && !strings.Contains(code, `"`) { // strings have no -
			replace(at, at+token.Pos(len(old)), swapped, old+" to "+swapped+" in "+code)
		}
	}
	remove := func() { replace(n.Pos(), n.End(), "", "remove "+code) }
	switch n := n.(type) {
	case *ast.IfStmt:
		replace(n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")", "negate "+code)
	case *ast.BinaryExpr:
		swap(n.OpPos, n.Op.String())
	case *ast.Ident:
		swap(n.Pos(), n.Name)
	case *ast.ExprStmt, *ast.IncDecStmt:
		remove()
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			remove()
			swap(n.TokPos, n.Tok.String())
		}
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil {
			replace(n.Pos(), n.End(), strconv.Itoa(v+1), n.Value+" to "+strconv.Itoa(v+1))
		}
	case *ast.FuncDecl:
		if n.Body != nil && n.Type.Results == nil {
			replace(n.Body.Lbrace, n.Body.Lbrace+1, "{ return;", "return at once from "+n.Name.Name)
		}
	}
}
