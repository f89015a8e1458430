package server

import (
	"bytes"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestNetLog expects lines of net/http to be truncated and escaped.
func TestNetLog(t *testing.T) {
	var text bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	std := log.New(NetLog(logger, slog.LevelWarn), "", 0)
	std.Printf("Unsolicited response: %s\nlevel=ERROR msg=forged\x1b[2J", strings.Repeat("x", 10_000))
	if lines := strings.Count(text.String(), "\n"); lines != 1 || text.Len() > 2*maxNetLog || strings.ContainsRune(text.String(), '\x1b') {
		t.Errorf("%d lines, %d bytes: %s", lines, text.Len(), text.String())
	}
	text.Reset()
	std.Print("line one\nlevel=ERROR msg=forged \x1b[2J")
	if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), `\n`) {
		t.Errorf("%d lines: %s", lines, text.String())
	}
	text.Reset()
	std.Print("http: panic serving 127.0.0.1:1: boom")
	if !strings.Contains(text.String(), "level=ERROR") {
		t.Errorf("a panic is logged as %s", text.String())
	}
}

func TestNoSniffing(t *testing.T) {
	base := startServer(t, Config{}).url
	for _, path := range []string{"/status", "/readyz", "/healthz", "/metrics", "/api/invoices", "/checkout/x", "/nothing"} {
		if a := ask(t, http.MethodGet, base+path, ""); a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s answers without nosniff", path)
		}
	}
}
