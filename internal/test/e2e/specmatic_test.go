package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

var combinations = flag.Int("combinations", 1, "how many `COMBINATIONS` of values TestExtraGeneratedRequests makes for each operation and response")

// generatedPatience bounds a run of Specmatic, which may send many requests.
const generatedPatience = 30 * time.Minute

// generatedConfig configures a service with limits that generated requests do not reach.
const generatedConfig = `
listen: 127.0.0.1:0
database: {urlEnv: DATABASE_URL}
limits: {perOwner: 100000}
merchants: [{id: demo-merchant}]
webhooks: {allow: [127.0.0.1]}
` + keySetting + `
chains:
  - chainKey: local
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
`

// TestExtraGeneratedRequests lets Specmatic make valid and invalid requests from openapi.yaml, and sends each of them to
// dev, on SQLite, and to serve, on PostgreSQL. No response may have a status of 500 or more, or differ from openapi.yaml.
// Specmatic's own verdict does not count, because it expects 200 also for random ids.
func TestExtraGeneratedRequests(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), generatedPatience)
	defer cancel()
	generator := newGenerator(ctx, t)
	chainWorld, _ := startWorld(t)
	generator.run(ctx, t, chainWorld.info.Load().BaseURL, serveGenerated(t, chainWorld, dbtest.MigratedPostgres(t)))
}

// serveGenerated runs a service on a database and a world's chain, and returns its URL.
func serveGenerated(t *testing.T, chainWorld *world, database string) string {
	t.Helper()
	on := chainWorld.info.Load().Chain
	config := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.OK(t, os.WriteFile(config, fmt.Appendf(nil, generatedConfig, on.ChainID, on.RPCURL, on.Token), 0o600))
	c := launchWith(t, []string{"DATABASE_URL=" + database}, "serve", "--config", config)
	return c.awaitURL(t)
}

// generator is an installation of Specmatic.
type generator struct{ java, jar string }

func newGenerator(ctx context.Context, t *testing.T) generator {
	t.Helper()
	java, err := testdeps.ProgramOf(ctx, "e2e", "openjdk-17-jre-headless", "java")
	expect.OK(t, err)
	modules, err := testdeps.NodeModules(ctx, "e2e", testdeps.Repo("tools/openapi"))
	expect.OK(t, err)
	return generator{java, filepath.Join(modules, "specmatic", "specmatic.jar")}
}

// dictionary has values of members that are only accepted if the service knows them.
const dictionary = `
CreateInvoiceRequest:
  merchantId: demo-merchant
  merchantAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
  chainKey: local
  currency: USDC
  amount: "4900000"
  expiresAt: %d
  lineItems: []
`

// run lets Specmatic make requests, and sends each to all services at the URLs.
func (g generator) run(ctx context.Context, t *testing.T, services ...string) {
	t.Helper()
	dir := t.TempDir()
	document, operations := inWindows(t)
	for name, content := range map[string][]byte{
		"openapi.yaml":            document,
		"openapi_dictionary.yaml": fmt.Appendf(nil, dictionary, time.Now().Add(time.Hour).Unix()),
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	fronts, address := newFronts(t, services)
	cmd := exec.CommandContext(ctx, g.java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", g.jar, "test", "openapi.yaml", "--testBaseURL="+address)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "IGNORE_INLINE_EXAMPLES=true", "SPECMATIC_GENERATIVE_TESTS=true", "MAX_TEST_REQUEST_COMBINATIONS="+strconv.Itoa(*combinations))
	out, err := cmd.CombinedOutput()
	summary := regexp.MustCompile(`Tests run: (\d+)`).FindSubmatch(out)
	if summary == nil {
		t.Fatalf("specmatic: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	n, err := strconv.Atoi(string(summary[1]))
	if err != nil || n < 2*operations {
		t.Errorf("specmatic made %s tests of %d operations: %v", summary[1], operations, err)
	}
	for i, f := range fronts {
		if f.requests.Load() < int64(n) {
			t.Errorf("specmatic made %d tests, and %s had %d requests", n, services[i], f.requests.Load())
		}
	}
	t.Logf("%d requests of %d operations to each service", fronts[0].requests.Load(), operations)
}

// windowSize bounds the query parameters of an operation, because Specmatic tries all combinations of
// them: 17 parameters are 131,072 requests.
const windowSize = 3

// inWindows returns openapi.yaml as JSON with at most windowSize query parameters for each operation. An operation with
// more occurs again at other paths, such as /window1/api/invoices, with the next ones. operations counts all of these.
func inWindows(t *testing.T) (text []byte, operations int) {
	t.Helper()
	var document map[string]any
	expect.OK(t, yaml.Unmarshal(quittance.OpenAPI, &document))
	shared := document["components"].(map[string]any)["parameters"].(map[string]any)
	paths := document["paths"].(map[string]any)
	delete(paths, "/api/events/stream") // its responses do not end
	for path, item := range maps.Clone(paths) {
		for method, operation := range item.(map[string]any) {
			fields := operation.(map[string]any)
			operations++
			if _, ok := fields["parameters"]; !ok {
				continue
			}
			kept, query := splitParameters(shared, fields["parameters"].([]any))
			fields["parameters"] = append(slices.Clone(kept), query[:min(windowSize, len(query))]...)
			for i := windowSize; i < len(query); i += windowSize {
				operations++
				again := maps.Clone(fields)
				again["operationId"] = fmt.Sprint(fields["operationId"], i)
				again["parameters"] = append(slices.Clone(kept), query[i:min(i+windowSize, len(query))]...)
				paths[fmt.Sprintf("/window%d%s", i/windowSize, path)] = map[string]any{method: again}
			}
		}
	}
	text, err := json.Marshal(document)
	expect.OK(t, err)
	return text, operations
}

// splitParameters returns an operation's query parameters and its others, without the version, of which there is only
// one.
func splitParameters(shared map[string]any, all []any) (others, query []any) {
	for _, parameter := range all {
		p := parameter.(map[string]any)
		name, ok := p["$ref"].(string)
		if name == "#/components/parameters/Version" {
			continue
		}
		if ok {
			p = shared[strings.TrimPrefix(name, "#/components/parameters/")].(map[string]any)
		}
		if p["in"] == "query" {
			query = append(query, parameter)
		} else {
			others = append(others, parameter)
		}
	}
	return others, query
}

// front is a proxy of a service. It adds the operator's key to three of four requests, and replaces
// the id in their path by one that the service has returned.
type front struct {
	testing.TB
	requests atomic.Int64
	mu       sync.Mutex
	ids      map[string]string // the newest id by its kind, such as "invoices"
}

// windowPath is the beginning of a path that inWindows adds.
var windowPath = regexp.MustCompile(`^/window\d+`)

// newFronts returns a front of each service, and a URL from which each request goes to all of them. Its response is the
// first front's.
func newFronts(tb testing.TB, services []string) (fronts []*front, address string) {
	tb.Helper()
	var handlers []http.Handler
	for _, service := range services {
		target := expect.Must(url.Parse(service))
		f := &front{TB: tb, ids: make(map[string]string)}
		fronts = append(fronts, f)
		handlers = append(handlers, apitest.Check(tb, &httputil.ReverseProxy{Rewrite: f.rewrite(target), ModifyResponse: f.check}))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			tb.Errorf("%s %s: read the request: %v", r.Method, r.URL, err)
		}
		r.URL.Path, r.URL.RawPath = windowPath.ReplaceAllString(r.URL.Path, ""), windowPath.ReplaceAllString(r.URL.RawPath, "")
		answers := make([]*httptest.ResponseRecorder, len(handlers))
		var all sync.WaitGroup
		for i, h := range handlers {
			own := r.Clone(r.Context())
			own.Body, answers[i] = io.NopCloser(bytes.NewReader(body)), httptest.NewRecorder()
			all.Go(func() { h.ServeHTTP(answers[i], own) })
		}
		all.Wait()
		maps.Copy(w.Header(), answers[0].Header())
		w.WriteHeader(answers[0].Code)
		if _, err := w.Write(answers[0].Body.Bytes()); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			tb.Logf("%s %s: write the response: %v", r.Method, r.URL, err)
		}
	}))
	tb.Cleanup(server.Close)
	return fronts, server.URL
}

var objectPath = regexp.MustCompile(`^/api/(invoices|payments|events|keys|refunds)/([^/]+)`)

func (f *front) rewrite(target *url.URL) func(*httputil.ProxyRequest) {
	return func(r *httputil.ProxyRequest) {
		n := f.requests.Add(1)
		r.SetURL(target)
		r.Out.Host = target.Host
		query := r.Out.URL.Query()
		if seconds, err := strconv.Atoi(query.Get("wait")); err == nil && seconds > 0 && seconds <= 60 {
			query.Set("wait", "0")
			r.Out.URL.RawQuery = query.Encode()
		}
		if n%4 == 0 {
			return
		}
		r.Out.Header.Set("Authorization", "Bearer "+operatorKey)
		if at := objectPath.FindStringSubmatchIndex(r.Out.URL.Path); at != nil {
			f.mu.Lock()
			id := f.ids[r.Out.URL.Path[at[2]:at[3]]]
			f.mu.Unlock()
			if id != "" {
				r.Out.URL.Path, r.Out.URL.RawPath = r.Out.URL.Path[:at[4]]+id+r.Out.URL.Path[at[5]:], ""
			}
		}
	}
}

// check fails the test at a status of 500 or more, and stores the id of a created object.
func (f *front) check(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if answer.StatusCode >= http.StatusInternalServerError {
		f.Errorf("%s %s: status %d, %s", answer.Request.Method, answer.Request.URL, answer.StatusCode, body)
	}
	if kind, ok := strings.CutPrefix(answer.Request.URL.Path, "/api/"); ok && answer.StatusCode == http.StatusCreated {
		var made struct {
			ID  string `json:"id"`
			Key struct {
				ID string `json:"id"`
			} `json:"key"`
		}
		if err := json.Unmarshal(body, &made); err != nil {
			f.Errorf("%s %s: %v", answer.Request.Method, answer.Request.URL, err)
		}
		f.mu.Lock()
		f.ids[kind] = cmp.Or(made.ID, made.Key.ID)
		f.mu.Unlock()
	}
	return nil
}
