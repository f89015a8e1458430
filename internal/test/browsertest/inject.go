package browsertest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/quittance/quittance/internal/test/expect"
)

// provider is the script of a wallet in the page. It passes requests to Go by a binding, which makes no network
// request. Each document has its own generation, so that the answer to a request of an earlier document is dropped.
const provider = `(() => {
	const wallet = %s;
	const waiting = new Map(), listeners = new Map();
	const generation = crypto.randomUUID();
	let last = 0;
	const provider = {
		request: ({ method, params }) => new Promise((resolve, reject) => {
			const id = generation + ++last;
			waiting.set(id, { resolve, reject });
			window[wallet.binding](JSON.stringify({ id, method, params: params ?? [] }));
		}),
		on: (event, listener) => { listeners.set(event, [...listeners.get(event) ?? [], listener]); },
		removeListener: (event, listener) => { listeners.set(event, (listeners.get(event) ?? []).filter((l) => l !== listener)); },
	};
	window["answer_" + wallet.binding] = ({ id, result, error }) => {
		const w = waiting.get(id);
		waiting.delete(id);
		if (error) w?.reject(Object.assign(new Error(error.message), error));
		else w?.resolve(result);
	};
	window["emit_" + wallet.binding] = (event, value) => { for (const l of listeners.get(event) ?? []) l(value); };
	if (wallet.injected) {
		window.ethereum = provider;
		return;
	}
	const detail = Object.freeze({ info: Object.freeze({ uuid: crypto.randomUUID(), name: wallet.name, icon: wallet.icon, rdns: wallet.rdns || undefined }), provider });
	const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
	addEventListener("eip6963:requestProvider", announce);
	announce();
})()`

// binding is the name of a wallet's binding in the page.
func binding(i int) string { return fmt.Sprintf("wallet_%d", i) }

// inject makes a wallet known to the page's documents.
func (p *Page) inject(w *Wallet, i int) {
	p.t.Helper()
	name := binding(i)
	described, err := json.Marshal(map[string]any{"name": w.Name, "rdns": w.RDNS, "icon": w.Icon, "injected": w.Injected, "binding": name})
	expect.OK(p.t, err)
	err = chromedp.Listen(p.ctx, func(event any) {
		if called, ok := event.(*runtime.EventBindingCalled); ok && called.Name == name {
			go p.answer(w, name, called.Payload) // the listener must not block
		}
	})
	expect.OK(p.t, err)
	call(p, runtime.AddBinding, runtime.AddBindingParams{Name: name})
	p.onNewDocument(fmt.Sprintf(provider, described))
}

// answer sends the wallet's answer to a request. The page may be closed or have another document by then.
func (p *Page) answer(w *Wallet, name, payload string) {
	var request struct {
		ID     string            `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(payload), &request); err != nil {
		panic(err) // the script above sends it
	}
	result, err := w.request(p.ctx, Call{request.Method, request.Params})
	if errors.Is(err, ErrNoAnswer) {
		return
	}
	answer := map[string]any{"id": request.ID, "result": result}
	if err != nil {
		var known *RPCError
		if !errors.As(err, &known) {
			known = &RPCError{-32603, err.Error()}
		}
		answer = map[string]any{"id": request.ID, "error": known}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[*runtime.RemoteObject](fmt.Sprintf("void window.answer_%s?.(%s)", name, text)))
}

// ErrNoAnswer makes a wallet never answer.
var ErrNoAnswer = errors.New("the wallet does not answer")

// Emit makes the page's wallet with this index emit an event, such as accountsChanged.
func (p *Page) Emit(wallet int, event string, value any) {
	p.t.Helper()
	text := expect.Must(json.Marshal(value))
	p.Eval(fmt.Sprintf("void window.emit_%s(%q, %s)", binding(wallet), event, text), nil)
}
