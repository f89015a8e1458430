// The script of all payers' pages, except the part that talks to wallets. Without it the pages show
// the same.

import { lookAgain } from "./again";
import "./ask";
import "./claim";
import "./copy";
import "./forms";
import { frame } from "./frame";
import { live } from "./live";
import { writeLocally } from "./local";
import "./offer";
import "./print";
import "./prover";
import "./return";
import "./visit";

document.documentElement.classList.add("scripted");
writeLocally();
frame();
const main = document.getElementById("checkout");
if (main) live(main);
const check = document.querySelector<HTMLElement>("main.check");
if (check) lookAgain(check);
