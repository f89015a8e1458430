package config_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/test/expect"
)

// withNode returns the full configuration with other settings of its last node.
func withNode(node string) string {
	return strings.Replace(full, "[http://127.0.0.1:8545]", "[https://first.example, "+node+"]", 1)
}

// TestNodeSettings reads the properties of a node, and shows it without its secrets.
func TestNodeSettings(t *testing.T) {
	text := withNode("{url: 'https://second.example/hunter2', maxBatch: 7, maxRange: 500, callsPerSecond: 25, headers: [{name: authorization, valueEnv: NOT_A_KEY}, {name: X-Plan, valueFile: /run/secrets/shop}]}")
	cfg, err := config.Parse([]byte(text), secrets)
	expect.OK(t, err)
	want := []chain.NodeSettings{{}, {MaxBatch: 7, MaxRange: 500, CallsPerSecond: 25, Headers: http.Header{"Authorization": {"hunter2"}, "X-Plan": {"whsec_from_the_file"}}}}
	if diff := cmp.Diff(want, cfg.Chains[1].Nodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"https://first.example", "https://second.example/hunter2"}, cfg.Chains[1].RPC); diff != "" {
		t.Error(diff)
	}
	shown := show(t, text)
	for _, want := range []string{"url: https://second.example/…\n", "maxBatch: 7\n", "maxRange: 500\n", "callsPerSecond: 25\n", "name: authorization\n", "valueEnv: NOT_A_KEY\n", "valueFile: /run/secrets/shop\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it lacks %q:\n%s", want, shown)
		}
	}
	for _, secret := range []string{"hunter2", "whsec_from"} {
		if strings.Contains(shown, secret) {
			t.Errorf("it shows %q:\n%s", secret, shown)
		}
	}
}

// TestNodeSettingsRefuses tries settings just beyond their limits.
func TestNodeSettingsRefuses(t *testing.T) {
	src := secrets
	values := map[string]string{"LONG": strings.Repeat("x", config.MaxHeaderValue), "TOO_LONG": strings.Repeat("x", config.MaxHeaderValue+1), "LINES": "a\r\nHost: b", "TAB": "a\tb"}
	src.Env = func(name string) (string, bool) {
		if v, ok := values[name]; ok {
			return v, true
		}
		return secrets.Env(name)
	}
	headers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("{name: X-%d, valueEnv: ONE}", i))
		}
		return "headers: [" + strings.Join(all, ", ") + "]"
	}
	header := func(name, env string) string { return "headers: [{name: '" + name + "', valueEnv: " + env + "}]" }
	for settings, want := range map[string]string{
		"callsPerSecond: 1": "", fmt.Sprint("callsPerSecond: ", config.MaxCallsPerSecond): "",
		"callsPerSecond: 0": "rpc[1].callsPerSecond: is \"0\"; want a whole number of 1 to 10000",
		fmt.Sprint("callsPerSecond: ", config.MaxCallsPerSecond+1): "rpc[1].callsPerSecond: is \"10001\"; want a whole number of 1 to 10000",
		"maxBatch: 1": "", fmt.Sprint("maxBatch: ", chain.MaxBatch): "", "maxRange: 1": "", fmt.Sprint("maxRange: ", chain.MaxRange): "",
		"maxBatch: 0": "rpc[1].maxBatch: is \"0\"; want a whole number of 1 to 100",
		fmt.Sprint("maxBatch: ", chain.MaxBatch+1): "rpc[1].maxBatch: is \"101\"; want a whole number of 1 to 100",
		"maxRange: 0": "rpc[1].maxRange: is \"0\"; want a whole number of 1 to 8192",
		fmt.Sprint("maxRange: ", chain.MaxRange+1): "rpc[1].maxRange: is \"8193\"; want a whole number of 1 to 8192",
		headers(config.MaxNodeHeaders):             "",
		headers(config.MaxNodeHeaders + 1):         "rpc[1].headers: has 11; want at most 10",
		header("X-Key", "LONG"):                    "",
		header("X-Key", "TOO_LONG"):                "headers[0].value: is refused",
		header("X-Key", "LINES"):                   "headers[0].value: is refused",
		header("X-Key", "TAB"):                     "headers[0].value: is refused",
		header("X-Key", "NOWHERE"):                 "headers[0].valueEnv: the environment variable NOWHERE is not set",
		header("", "ONE"):                          "headers[0].name: is \"\"; want the name of a header",
		header("X Key", "ONE"):                     "headers[0].name: is \"X Key\"",
		header("X-Key:", "ONE"):                    "headers[0].name: is \"X-Key:\"",
		header("host", "ONE"):                      "headers[0].name: is Host, which the service",
		header("content-type", "ONE"):              "headers[0].name: is Content-Type, which",
		header("proxy-authorization", "ONE"):       "headers[0].name: is Proxy-Authorization, which",
		header("sec-websocket-key", "ONE"):         "headers[0].name: is Sec-Websocket-Key, which",
		"headers: [{name: X-A, valueEnv: ONE}, {name: x-a, valueEnv: ONE}]": "headers[1].name: is X-A, as one before it",
		"headers: [{name: X-A}]":                "headers[0].value: want either valueEnv",
		"headers: [{name: X-A, value: secret}]": "there is no setting \"value\" here",
		"urlEnv: NODE_URL":                      "want one of url, urlEnv and urlFile",
		"unknown: 1":                            "there is no setting \"unknown\" here",
		"maxRangee: 1":                          "there is no setting \"maxRangee\" here; did you mean maxRange?",
	} {
		_, err := config.Parse([]byte(withNode("{url: 'https://second.example', "+settings+"}")), src)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v; want %q", settings, err, want)
		}
	}
}
