// All deliberate faults; a fault's number is its place.

import { decodingFaults } from "./decoding_faults.ts";
import { type Fault, listed } from "./fault.ts";
import { formatFaults } from "./format_faults.ts";
import { graphFaults } from "./graph_faults.ts";
import { kernelFaults } from "./kernel_faults.ts";
import { modelFaults } from "./model_faults.ts";
import { opFaults } from "./op_faults.ts";
import { quantFaults } from "./quant_faults.ts";
import { textFaults } from "./text_faults.ts";

/** The table. */
export const faults: readonly Fault[] = listed([
  ...graphFaults,
  ...decodingFaults,
  ...textFaults,
  ...quantFaults,
  ...formatFaults,
  ...modelFaults,
  ...opFaults,
  ...kernelFaults,
]);
