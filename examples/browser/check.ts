// Checks every kernel on the visitor's own GPU (or CPU), and shows a report to copy.

import type { KernelReport } from "../../engine/platform/browser/mod.ts";
import { element, shown, showProgress, startEngine } from "./client.ts";

const order = startEngine();
const report = element<HTMLTextAreaElement>("report");

for (const device of ["wasm", "gpu"] as const) {
  element<HTMLButtonElement>(device).onclick = async () => {
    const ops = new URLSearchParams(location.search).get("ops")?.split(",");
    const listener = { onProgress: showProgress };
    const result = await shown(order({ kind: "check", device, ...ops && { ops } }, listener));
    if (result) report.value = (result as KernelReport).text;
  };
}

element<HTMLButtonElement>("copy").onclick = () => navigator.clipboard.writeText(report.value);
