package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/heaproom"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/wait"
)

// serverConfig is the input of the server process.
type serverConfig struct {
	Database     string
	RPC          string
	Token        invoice.Address
	Registry     invoice.Address
	Finality     chain.Finality
	StartBlock   *uint64
	PollInterval time.Duration
	Webhook      poster.Endpoint // without a URL no events are delivered
	Profile      string          // where to write a profile of its CPU time; empty for none
	Log          string          // file for its log, with all requests; if empty, standard error has its warnings
	OwnDoors     bool            // each door has an address of its own
	TLS          *server.TLS     // that the public door has; nil for plain HTTP
	OpenFiles    int             // file descriptors that it may use; 0 for the system's limit
	PerOwner     int             // requests a second that an owner of keys may make; 0 for no limit
	Proxies      clientip.Proxies
	MemoryLimit  int64         // as of GOMEMLIMIT, in bytes; 0 for none
	Gasless      bool          // payers' authorizations are sent, from the account of OperatorKey
	OperatorKey  hexutil.Bytes // empty for none
}

// serveChild runs the server of a measurement until its standard input ends.
func serveChild(ctx context.Context, text string) (err error) {
	var c serverConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // its end is what is waited for
		stop()
	}()
	if c.Profile != "" {
		file, err := os.Create(c.Profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if c.MemoryLimit > 0 {
		debug.SetMemoryLimit(c.MemoryLimit)
	}
	defer heaproom.Keep()()
	local, _ := chain.Lookup(chain.Local)
	local.RPC = []string{c.RPC}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: c.Token, Decimals: 6}}
	local.Registry = c.Registry
	local.StartBlock = c.StartBlock
	if c.Finality != (chain.Finality{}) {
		local.Finality = c.Finality
	}
	run := server.Chain{Chain: local, PollInterval: c.PollInterval}
	if c.Gasless {
		if run.OperatorKey, err = crypto.ToECDSA(c.OperatorKey); err != nil {
			return err
		}
		run.Gasless = &settle.AuthorizationBudget{PerMerchant: math.MaxInt32, PerPayer: math.MaxInt32, PerDay: math.MaxInt32}
	}
	listeners, err := server.ListenAll(ctx, c.addresses())
	if err != nil {
		return err
	}
	logger, closeLog, err := c.openLog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	return server.Run(ctx, server.Config{
		Listeners: listeners, Database: c.Database, Chains: []server.Chain{run},
		Merchants: server.Merchants{AcceptAll: true, Fallback: c.Webhook}, WebhookAllow: poster.Loopback(),
		Access: server.Access{Mode: access.Live, OperatorKey: operatorKey()},
		Now:    time.Now, Rand: rand.Reader,
		PerOwner: c.PerOwner, Proxies: c.Proxies, TLS: c.TLS, OpenFiles: c.OpenFiles, Logger: logger,
		Ready: func(url string) { // the parent reads it
			fmt.Println(url)
			for _, l := range listeners {
				fmt.Println(l.Addr())
			}
		},
	})
}

// addresses returns where the server listens.
func (c serverConfig) addresses() []server.Address {
	if !c.OwnDoors {
		return []server.Address{{Listen: "127.0.0.1:0"}}
	}
	var all []server.Address
	for _, door := range server.Doors {
		all = append(all, server.Address{Listen: "127.0.0.1:0", Doors: []server.Door{door}, HTTPS: c.TLS != nil && door == server.PublicDoor})
	}
	return all
}

// openLog returns the server's logger, and a function that closes its file.
func (c serverConfig) openLog() (*slog.Logger, func() error, error) {
	if c.Log == "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), func() error { return nil }, nil
	}
	file, err := os.Create(c.Log)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(file, nil)), file.Close, nil
}

// doorAddresses reads the address of each door, where each has its own.
func (s *service) doorAddresses() ([]string, error) {
	all := make([]string, len(server.Doors))
	for i := range all {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		all[i] = strings.TrimSpace(line)
	}
	return all, nil
}

// operatorKey returns the key of the measured services, which listen on the loopback
// interface.
func operatorKey() access.Key {
	key, err := access.NewKey(access.Live, bytes.NewReader(make([]byte, access.KeyLength)))
	if err != nil {
		panic(err) // the reader has enough bytes
	}
	return key
}

// process is this program, running in a role. It ends when its standard input
// does.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader // of its output
}

// startProcess runs this program in a role, as the flag of that name has it,
// and returns its first line of output.
func startProcess(ctx context.Context, role string, conf any) (*process, string, error) {
	text, err := json.Marshal(conf)
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, self, "-"+role, string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	p := &process{cmd, stdin, bufio.NewReader(stdout)}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("the %s did not start: %w", role, err), p.stop())
	}
	return p, strings.TrimSpace(line), nil
}

func (p *process) stop() error { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }

// clockTick is the unit of CPU time in /proc: a hundredth of a second on
// every Linux (USER_HZ).
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The fields after the name, which ends in ")": state is the first, utime
	// the 12th and stime the 13th (proc(5)).
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// memory returns the resident memory of the process in bytes, and the most that
// it ever was.
func (p *process) memory() (now, peak int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for name, into := range map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak} {
		_, rest, found := strings.Cut(string(raw), name)
		if !found {
			return 0, 0, fmt.Errorf("/proc has no %s", name)
		}
		kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*into = kb << 10
	}
	return now, peak, nil
}

// service is a running server, and its API.
type service struct {
	*process
	url string
	api *client.Client
}

func startService(ctx context.Context, c serverConfig) (*service, error) {
	p, url, err := startProcess(ctx, "server", c)
	if err != nil {
		return nil, err
	}
	api, err := client.New(url, client.WithKey(operatorKey().Reveal()), client.WithRetries(0))
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return &service{p, url, api}, nil
}

// world is an embedded chain and a server that reads it.
type world struct {
	node   *devchain.Chain
	server *service
	conf   serverConfig
	// merchants is how many merchants invoices are created for; 0 is one, aShop.
	merchants int64
}

// start runs a chain and a server that reads it. The configuration is filled in
// with what belongs to the chain; unless it says otherwise, the server has a
// subscription to it.
func (b *bench) start(ctx context.Context, c serverConfig) (*world, error) {
	node, err := devchain.Start(ctx, devchain.Config{})
	if err != nil {
		return nil, err
	}
	return startOn(ctx, node, c)
}

// startOn starts a server that follows the node, which it closes if the server does not start.
func startOn(ctx context.Context, node *devchain.Chain, c serverConfig) (*world, error) {
	c.Token, c.Registry = invoice.Address(node.Token), invoice.Address(node.Registry)
	switch c.RPC {
	case "":
		c.RPC = node.WSURL()
	case polled:
		c.RPC = node.RPCURL()
	}
	if c.Gasless {
		c.OperatorKey = crypto.FromECDSA(node.Keys.Operator)
	}
	p, err := startService(ctx, c)
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return &world{node: node, server: p, conf: c}, nil
}

// waitReady waits until the server, with one address for all doors, follows the chain.
func (w *world) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.url+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("wait for the server: %w", err)
		}
		if err := res.Body.Close(); err != nil {
			return err
		}
		if res.StatusCode == http.StatusOK {
			return nil
		}
		if !wait.Sleep(ctx, storedPoll, nil) {
			return fmt.Errorf("wait until the server is ready: %w", ctx.Err())
		}
	}
}

// polled, in place of a node's URL, means a node without subscriptions.
const polled = "http"

func (w *world) stop() error { return errors.Join(w.server.stop(), w.node.Close()) }
