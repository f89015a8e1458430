// Package webpage sends pages, the files that they load, and the data of the API, compressed if the client accepts
// that.
//
// # Amounts
//
// ParseAmount reads the amounts that people type.
//
// # Colors
//
// A Color computes shades of colors that can be read, by the contrast of WCAG 2.2.
//
// # Streams
//
// A PushStream sends server-sent events to very many clients that wait most of the time. A client over HTTP/1 costs its
// connection and a goroutine with a small stack: it takes the connection from net/http, so that the handler returns and
// its buffers are freed.
//
// # Long requests
//
// RequestContext lets requests outlast the usual deadline.
package webpage
