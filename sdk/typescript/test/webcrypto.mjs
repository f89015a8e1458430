// The package needs WebCrypto as a global, which Node has from version 20 on. The
// tests also run with version 18 of Debian 12, which has it as a module only.
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
