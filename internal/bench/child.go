package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/deliver"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
)

// childConfig is what the process of the server is told.
type childConfig struct {
	Database string
	RPC      string
	Token    invoice.Address
	Registry invoice.Address
	Webhook  deliver.Endpoint // without a URL no events are delivered
}

// serveChild runs the server of a measurement until its standard input ends.
func serveChild(ctx context.Context, text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // its end is what is waited for
		stop()
	}()
	local, _ := chain.Lookup("local")
	local.RPC = []string{c.RPC}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: c.Token, Decimals: 6}}
	local.Registry = c.Registry
	listener, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	return server.Run(ctx, server.Config{
		Listener: listener, Database: c.Database, Chains: []server.Chain{{Chain: local}},
		Merchants: server.Merchants{AcceptAll: true, Fallback: c.Webhook},
		Now:       time.Now, Rand: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Ready:  func(url string) { fmt.Println(url) }, // the parent reads it
	})
}

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
	url   string
}

func startProcess(ctx context.Context, c childConfig) (*process, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-child", string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), cmd.Wait())
	}
	return &process{cmd: cmd, stdin: stdin, url: strings.TrimSpace(url)}, nil
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

// memory returns the resident memory of the process in bytes.
func (p *process) memory() (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("/proc tells no VmRSS")
}

// world is an embedded chain and a server that reads it.
type world struct {
	node   *devchain.Chain
	server *process
}

func (b bench) start(ctx context.Context, database string, webhook deliver.Endpoint) (*world, error) {
	node, err := devchain.Start(ctx, devchain.Config{})
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, childConfig{
		Database: database, RPC: node.WSURL(), Webhook: webhook,
		Token: invoice.Address(node.Token), Registry: invoice.Address(node.Registry),
	})
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return &world{node, p}, nil
}

func (w *world) stop() error { return errors.Join(w.server.stop(), w.node.Close()) }
