// What the page does with the payer's wallet before the larger part is loaded.

import "./claim";
import "./offer";
import "./prover";
import "./return";
