package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// imageConfig is the configuration of the service in the image.
const imageConfig = `
listen: %s
access: {operatorKeyFile: /etc/quittance/operator-key}
database: sqlite:/var/lib/quittance/quittance.db
merchants: [{id: demo-merchant}]
chains:
  - chainKey: local
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
`

// TestExtraImage assembles the last stage of the Dockerfile in a folder and runs it as the
// image's user, with the folder as its read-only root, the image's environment, and a
// volume for the data. It passes the image's health check and takes an invoice.
func TestExtraImage(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	info := *w.info.Load()
	img := assembleImage(t, testdeps.Repo("Dockerfile"))
	pid := os.Getpid() // no other process listens on the loopback address of this one
	address := fmt.Sprintf("127.%d.%d.%d:8080", 1+pid>>16, pid>>8&0xff, pid&0xff)
	text := fmt.Sprintf(imageConfig, address, info.Chain.ChainID, info.Chain.RPCURL, info.Chain.Token)
	img.write(t, "etc/quittance/quittance.yaml", text)
	img.write(t, "etc/quittance/operator-key", operatorKey)

	if code := img.run(t, img.health...).exit(t, patience); code != 1 {
		t.Errorf("the health check without a service: exit code %d, want 1", code)
	}
	c := img.run(t, append(img.entrypoint, img.command...)...)
	var health *child
	if err := await(within(t, patience), func() bool {
		health = img.run(t, img.health...)
		return health.exit(t, patience) == 0 || c.ended()
	}); err != nil || c.ended() {
		t.Fatalf("the image is not healthy: %v\n%s", err, health.stderr.String())
	}
	img.checkConfined(t, c.cmd.Process.Pid)
	service := expect.Must(client.New("http://"+address, client.WithHTTPClient(withKey(w.http))))
	made, err := service.CreateInvoice(t.Context(), w.draft("4900000"))
	if err != nil || made.Invoice.Status != "open" {
		t.Errorf("create an invoice: %+v, %v", made, err)
	}
	if code := c.stop(t, syscall.SIGTERM, 30*time.Second); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(img.data, "quittance.db")); err != nil {
		t.Errorf("the database is not in the volume: %v", err)
	}
}

// checkConfined fails the test unless a process in the image has a read-only root and no capabilities.
func (img *image) checkConfined(t *testing.T, pid int) {
	t.Helper()
	for file, want := range map[string]string{
		"mountinfo": `(?m)^\S+ \S+ \S+ \S+ / ro[, ]`,
		"status":    `(?m)^CapEff:\t0+$`,
	} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil || !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s of the process, want %s: %v\n%s", file, want, err, text)
		}
	}
}

// image is a container image in a folder.
type image struct {
	root, data                  string // its file system, and its volume
	workdir, user               string
	env                         []string
	entrypoint, command, health []string
}

// Lines of the Dockerfile.
var (
	copyFrom   = regexp.MustCompile(`^--from=build (?:--chown=\S+ )?(/\S+) (/\S+)$`)
	buildLine  = regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /out/quittance (\./cmd/quittance)$`)
	healthLine = regexp.MustCompile(`^(?:--\S+ )*CMD (\[.*\])$`)
)

// assembleImage builds the last stage of a Dockerfile. It fails at a line that it does not understand,
// so that the folder is what Docker would build.
func assembleImage(t *testing.T, dockerfile string) *image {
	t.Helper()
	raw := expect.Must(os.ReadFile(dockerfile))
	build, last, ok := strings.Cut(string(raw), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage does not start from scratch")
	}
	img := &image{root: t.TempDir(), data: t.TempDir(), env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	for _, line := range strings.Split(strings.TrimSpace(last), "\n") {
		if !img.apply(t, build, line) {
			t.Fatalf("the Dockerfile has a line that this test does not know: %s", line)
		}
	}
	return img
}

// apply applies a line of the last stage. It reports whether it knows the line.
func (img *image) apply(t *testing.T, build, line string) bool {
	t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "#", "EXPOSE":
	case "COPY":
		found := copyFrom.FindStringSubmatch(rest)
		if found == nil {
			return false
		}
		img.copy(t, build, found[1], found[2])
	case "ENV":
		img.env = append(img.env, rest)
	case "USER":
		img.user, _, _ = strings.Cut(rest, ":")
	case "WORKDIR":
		img.workdir = rest
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &img.entrypoint) == nil
	case "CMD":
		return json.Unmarshal([]byte(rest), &img.command) == nil
	case "HEALTHCHECK":
		found := healthLine.FindStringSubmatch(rest)
		return found != nil && json.Unmarshal([]byte(found[1]), &img.health) == nil
	default:
		return false
	}
	return true
}

// copy copies a file of the build stage into the image.
func (img *image) copy(t *testing.T, build, from, to string) {
	t.Helper()
	switch from {
	case "/out/quittance":
		img.build(t, build, to)
	case "/out/data": // an empty folder
		img.mkdir(t, to)
	case "/usr/local/go/lib/time/zoneinfo.zip":
		goroot, err := exec.Command("go", "env", "GOROOT").Output()
		expect.OK(t, err)
		img.copyFile(t, filepath.Join(strings.TrimSpace(string(goroot)), "lib/time/zoneinfo.zip"), to)
	default:
		img.copyFile(t, from, to)
	}
}

// build builds the binary by the build stage's command. It leaves out -trimpath, which
// changes only names in debug information, and would compile every package again.
func (img *image) build(t *testing.T, build, to string) {
	t.Helper()
	found := buildLine.FindStringSubmatch(build)
	if found == nil {
		t.Fatal("the build stage has no line that builds the binary")
	}
	img.mkdir(t, filepath.Dir(to))
	cmd := exec.Command("sh", "-c", strings.Replace(found[1], " -trimpath", "", 1)+` -o "$0" `+found[2], filepath.Join(img.root, to))
	cmd.Dir = testdeps.Repo(".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, out)
	}
}

func (img *image) copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatalf("%v; on Debian and Ubuntu, install ca-certificates", err)
	}
	img.write(t, to, string(raw))
}

func (img *image) write(t *testing.T, path, text string) {
	t.Helper()
	img.mkdir(t, filepath.Dir(path))
	expect.OK(t, os.WriteFile(filepath.Join(img.root, path), []byte(text), 0o644))
}

func (img *image) mkdir(t *testing.T, path string) {
	t.Helper()
	expect.OK(t, os.MkdirAll(filepath.Join(img.root, path), 0o755))
}

// enter makes a folder the read-only root of a program, with a volume at its working
// directory, and runs it as a user without privileges: sh enter ROOT DATA WORKDIR USER
// PROGRAM…. It needs no root, but a kernel that grants user namespaces.
const enter = `
mount --bind "$1" "$1"
mount --bind "$2" "$1$3"
mount -o remount,bind,ro "$1"
root=$1 dir=$3 user=$4
shift 4
exec unshare --user --map-user="$user" --map-group="$user" --root="$root" --wd="$dir" "$@"`

// run runs a command in the image.
func (img *image) run(t *testing.T, args ...string) *child {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-ec", enter, "sh",
		img.root, img.data, img.workdir, img.user}, args...)...)
	cmd.Env = img.env
	return startChild(t, cmd)
}
