// The package needs WebCrypto as a global, which Node has since version 20. The tests also run with version 18 of
// Debian 12, which has it only as a module.
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
