package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/server"
)

const (
	// floodFiles is how many file descriptors the flooded server may use, with which its door
	// for programs has 753 connections.
	floodFiles = 4096
	// floodMemory is the most memory that the flooded server is to have, in MB.
	floodMemory = 400
)

// measureFlood measures normal traffic at a door while another client address sends bodies
// without an end over HTTP/2, or takes the door's connections, and the server's memory.
func (b *bench) measureFlood(ctx context.Context, kind string) (err error) {
	database, err := b.url(ctx, kind, "flood")
	if err != nil {
		return err
	}
	certificate, pool, err := b.newCertificate()
	if err != nil {
		return err
	}
	// A proxy that is not there: so the server limits addresses of this machine.
	proxies := clientip.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}, Header: clientip.XForwardedFor}
	w, err := b.start(ctx, serverConfig{
		Database: database, OwnDoors: true, TLS: certificate, OpenFiles: floodFiles, Proxies: proxies, Log: filepath.Join(b.dir, "flood_"+kind+".log"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	addresses, err := w.server.doorAddresses()
	if err != nil {
		return err
	}
	programs, err := w.newGetter(ctx)
	if err != nil {
		return err
	}
	programs.client.CloseIdleConnections()
	// Each of their requests opens a new connection, which must get in.
	programs.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: getTimeout}
	transport := &http.Transport{MaxIdleConnsPerHost: connections, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}
	defer transport.CloseIdleConnections()
	payers := &getter{&http.Client{Transport: transport, Timeout: getTimeout}, "https://" + addresses[0] + "/checkout/" + filepath.Base(programs.url) + "/status", programs.key}
	for _, g := range []*getter{programs, payers} {
		if _, err := g.get(ctx, time.Second); err != nil {
			return err // warm up
		}
	}
	if err := b.measureUnder(ctx, kind, w, programs, fmt.Sprintf("%d slow bodies of an address at its door of %d", floodBodies, 753), attack{Bodies: addresses[1]}); err != nil {
		return err
	}
	before, _, err := w.server.memory()
	if err != nil {
		return err
	}
	if err := b.measureUnder(ctx, kind, w, payers, fmt.Sprintf("%d connections of %d bodies without an end", floodConnections, floodStreams), attack{Streams: addresses[0]}); err != nil {
		return err
	}
	_, peak, err := w.server.memory()
	if err != nil {
		return err
	}
	b.report.row(kind, "resident memory with bodies without an end", fmt.Sprintf("%d MB", peak>>20), fmt.Sprintf("%d MB", floodMemory),
		fmt.Sprintf("%.2f", float64(peak>>20)/floodMemory), fmt.Sprintf("its peak; %d MB before; the ceiling is the target", before>>20))
	return nil
}

// measureUnder measures normal traffic with and without an attack, in turns.
func (b *bench) measureUnder(ctx context.Context, kind string, w *world, g *getter, what string, a attack) error {
	var without, with turns
	for range doorsRounds {
		if err := without.measure(ctx, w, g, attack{}, b.turn); err != nil {
			return fmt.Errorf("without %s: %w", what, err)
		}
		if err := with.measure(ctx, w, g, a, b.turn); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	p99, ceiling := quantile(with.took, 0.99), quantile(without.took, 0.99)
	seconds := doorsRounds * b.turn.Seconds()
	b.report.slower(kind, fmt.Sprintf("GET at the same door, %d/s, p99 during %s", getRate, what), p99, ceiling,
		fmt.Sprintf("ceiling: without them, in turns; medians %v and %v; %s; CPUs used meanwhile: %.2f by the server, %.2f by the attacker",
			quantile(with.took, 0.5), quantile(without.took, 0.5), with.result.String(), with.server.Seconds()/seconds, with.attacker.Seconds()/seconds))
	return nil
}

// newCertificate writes a certificate for this machine, and returns a pool that trusts it.
func (b *bench) newCertificate() (*server.TLS, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	files := &server.TLS{CertificateFile: filepath.Join(b.dir, "flood.crt"), KeyFile: filepath.Join(b.dir, "flood.key")}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return files, pool, errors.Join(os.WriteFile(files.CertificateFile, certificate, 0o600),
		os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
