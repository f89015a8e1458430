package walk_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/testdeps"
)

var (
	tree     = flag.String("tree", testdeps.Repo(""), "walk through the product and the documents of the repository in this `folder`, such as an older commit's")
	pictures = flag.String("pictures", "", "look at the pages, and write pictures of them to this `folder`")
)

// patience bounds how long a person looks for what to do next.
const patience = 20 * time.Second

// desktop is the window of people at a desk.
var desktop = browsertest.Options{Width: 1280}

// walk is the way of one person.
type walk struct {
	*testing.T
	who    string
	dir    string // where the person works
	env    []string
	device browsertest.Options
	page   *browsertest.Page

	steps         int
	guesses, ends []string
	began         time.Time
	paused        time.Duration // of what is no part of the way: looking at pages, and preparing
	took          time.Duration
}

var done []*walk

func TestMain(m *testing.M) {
	code := browsertest.Main(m)
	if len(done) > 0 {
		report(os.Stdout)
	}
	os.Exit(code)
}

// TestExtraWalk walks through the product as each person.
func TestExtraWalk(t *testing.T) {
	for _, person := range []struct {
		who   string
		walks func(*walk)
	}{{"developer", develop}, {"operator", operate}, {"payer", pay}, {"accountant", account}} {
		t.Run(person.who, func(t *testing.T) {
			w := &walk{T: t, who: person.who, dir: t.TempDir(), device: desktop, began: time.Now()}
			w.env = append(os.Environ(), "PATH="+filepath.Join(*tree, "bin")+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+w.dir)
			done = append(done, w)
			defer func() { w.took = time.Since(w.began) - w.paused }()
			person.walks(w)
		})
	}
}

// report writes a table of the walks, and what each had to guess and where it could not go on.
func report(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WALK\tSTEPS\tGUESSES\tDEAD ENDS\tTIME")
	for _, w := range done {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\n", w.who, w.steps, len(w.guesses), len(w.ends), w.took.Round(time.Second))
	}
	_ = table.Flush() // to the test's output
	for _, w := range done {
		for _, guess := range w.guesses {
			fmt.Fprintf(out, "%s guessed %s\n", w.who, guess)
		}
		for _, end := range w.ends {
			fmt.Fprintf(out, "%s could not go on: %s\n", w.who, end)
		}
	}
}

// guess records what the person needed and nothing had shown.
func (w *walk) guess(format string, args ...any) {
	w.guesses = append(w.guesses, fmt.Sprintf(format, args...))
}

// stuck records that nothing leads on.
func (w *walk) stuck(format string, args ...any) {
	w.Helper()
	end := fmt.Sprintf(format, args...)
	w.ends = append(w.ends, end)
	w.Errorf("dead end: %s", end)
}

// pause runs what is no part of the way.
func (w *walk) pause(f func()) {
	began, before := time.Now(), w.paused
	f()
	w.paused = before + time.Since(began) // which includes the pauses in f
}
