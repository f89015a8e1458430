package walk_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// terminal is a program that runs in a terminal.
type terminal struct {
	w    *walk
	line string // that started it
	file string // what it shows
}

// start starts a program by a line that the person types.
func (w *walk) start(line string) *terminal {
	w.Helper()
	w.steps++
	file, err := os.CreateTemp(w.TempDir(), "terminal")
	expect.OK(w, err)
	cmd := exec.CommandContext(w.Context(), "sh", "-c", "{ "+line+"; } 2>&1 | tee "+file.Name())
	cmd.Dir, cmd.Env = w.dir, w.env
	devtest.Run(w, cmd)
	return &terminal{w, line, file.Name()}
}

// find returns the first group of what a regular expression finds on the screen, or "".
func (t *terminal) find(pattern string) string {
	text := expect.Must(os.ReadFile(t.file))
	return group(pattern, string(text))
}

// shows waits until a regular expression finds something on the screen, and returns its first group. Otherwise the walk is
// at a dead end, and goes on without it.
func (t *terminal) shows(pattern string) (found string) {
	t.w.Helper()
	if !t.w.await(func() bool { found = t.find(pattern); return found != "" }) {
		t.w.stuck("%s shows no %q but\n%s", t.line, pattern, t.find(`(?s)(.*)`))
	}
	return found
}

// group returns the first group of what a regular expression finds in a text, or "".
func group(pattern, text string) string {
	if found := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// run runs commands that the person types, one a line, and returns what they print. A command that fails is a dead end.
func (w *walk) run(lines string) string {
	w.Helper()
	w.steps += devtest.Lines(strings.ReplaceAll(lines, "\\\n", ""))
	cmd := exec.CommandContext(w.Context(), "sh", "-ec", lines)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.stuck("%s: %v\n%s", lines, err, out)
	}
	return string(out)
}

// command returns the command with some words that a document has in a block of code or between backquotes, on one line.
// Otherwise the person guesses it.
func (w *walk) command(document, words, otherwise string) string {
	w.Helper()
	text := strings.ReplaceAll(w.document(document), "\\\n", "")
	if found := group(`(?:^ *(?:\$ )?|\x60)([^\s\x60]*`+words+`[^\x60\n]*)`, text); found != "" {
		return strings.TrimSpace(found)
	}
	w.guess("%s, which %s does not have", otherwise, document)
	return otherwise
}

// build builds the program as a document says. Readers of that document do this first.
func (w *walk) build() {
	w.Helper()
	w.dir = *tree
	w.run(w.command("README.md", `go build -o bin/`, "go build -o bin/ ./cmd/quittance"))
}

// world starts a development world, which was prepared for the person.
func (w *walk) world() (n *network) {
	w.Helper()
	w.pause(func() {
		steps, dir := w.steps, w.dir
		w.build()
		w.dir = dir
		t := w.start("quittance dev --listen 127.0.0.1:0 --rpc-listen 127.0.0.1:0 --block-time 200ms --data " + w.TempDir())
		t.shows(`^(Stop with Ctrl-C)`)
		n = w.networkOf(t.find(`open (http\S+) in a browser`))
		w.steps = steps
	})
	return n
}
