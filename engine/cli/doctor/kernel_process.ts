// What a process of `troodon doctor` runs (kernel_processes.ts): it takes an order as its argument, and writes what it has
// to tell as lines of JSON.

import { exit, processArguments, systemTerminal } from "../terminal.ts";
import {
  checkShare,
  type KernelNews,
  type KernelShare,
  type KernelTiming,
  timeThese,
} from "./kernel_share.ts";

const terminal = systemTerminal();
const tell = (news: KernelNews) => terminal.out(JSON.stringify(news) + "\n");
const onBegin = (begins: string) => tell({ begins });
const order = JSON.parse(processArguments()[0]!) as KernelShare | KernelTiming;
try {
  if ("timed" in order) { for await (const speed of timeThese(order, onBegin)) tell({ speed }); }
  else for await (const check of checkShare(order, onBegin)) tell({ check });
  tell("done");
} catch (error) {
  tell({ error: error instanceof Error ? error.message : String(error) });
}
exit(0);
