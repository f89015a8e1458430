package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
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
	order     float64 // those with a larger one are tried first
}

var (
	// unimportant matches lines without a rule: logs, metrics, traces, messages, errors of other calls, sizes of
	// buffers, and times to wait.
	unimportant = regexp.MustCompile(`(?i)\blog\b|logger|metric|trace|span|observer|errors\.New|Errorf|err [!=]= nil|` +
		`return (true|false), err|\.Inc\(|make\(|\.(R?Lock|R?Unlock|Close|Stop|Done|Wait|Go|Grow|WriteString|Error|Info|` +
		`Warn|Debug)\(|cancel|wake|notify|time\.(Second|Minute|Hour|Millisecond)`)
	// money matches the names of files with a rule about money. Their lines are drawn three times as often as others.
	money = regexp.MustCompile(`invoice/|amount|apply|attempt|breaker|budget|candidate|claim|confirm|create|decide|` +
		`deposit|fee|gas|judge|lease|match|nonce|pay|refund|remainder|replace|schedule|settle|status|sum|sweep|toleran|void`)
)

// draw returns changes in the order in which to try them, one of each line. The seed and the line determine the change.
func draw(seed uint64) (drawn []mutant, err error) {
	for pkg := range shares {
		paths, err := filepath.Glob(pkg + "/*.go")
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			lines, err := mutants(pkg, path)
			if err != nil {
				return nil, err
			}
			weight := map[bool]float64{true: 3, false: 1}[money.MatchString(path)]
			for number, all := range lines {
				line := uint64(crc32.ChecksumIEEE(fmt.Append(nil, path, number)))
				random := rand.New(rand.NewPCG(seed, line)) //nolint:gosec // a seeded choice
				m := all[random.IntN(len(all))]
				m.order = math.Pow(random.Float64(), 1/weight)
				drawn = append(drawn, m)
			}
		}
	}
	slices.SortFunc(drawn, func(a, b mutant) int { return int(math.Copysign(1, b.order-a.order)) })
	return drawn, nil
}

// mutants returns the changes of a file that are worth a test, by line.
func mutants(pkg, path string) (map[int][]mutant, error) {
	source, err := os.ReadFile(path)
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
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil {
			change(n, string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]), replace)
		}
		_, imported := n.(*ast.ImportSpec)
		return !imported
	})
	return found, nil
}

// swaps are what replaces an operator or a constant.
var swaps = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "&&": "||", "||": "&&",
	"+=": "-=", "-=": "+=", "true": "false", "false": "true",
}

// change calls replace with each change of a node, not of the nodes below it.
func change(n ast.Node, code string, replace func(from, to token.Pos, text, what string)) {
	short := []rune(strings.Join(strings.Fields(code), " "))
	name := string(short[:min(len(short), 44)])
	swap := func(at token.Pos, old string) {
		if swapped, ok := swaps[old]; ok && !strings.Contains(code, `"`) { // strings have no -
			replace(at, at+token.Pos(len(old)), swapped, old+" to "+swapped+" in "+name)
		}
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		replace(n.Cond.Pos(), n.Cond.End(), "!("+code[n.Cond.Pos()-n.Pos():n.Cond.End()-n.Pos()]+")", "negate "+name)
	case *ast.BinaryExpr:
		swap(n.OpPos, n.Op.String())
	case *ast.Ident:
		swap(n.Pos(), n.Name)
	case *ast.ExprStmt, *ast.IncDecStmt:
		replace(n.Pos(), n.End(), "", "remove "+name)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			replace(n.Pos(), n.End(), "", "remove "+name)
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
