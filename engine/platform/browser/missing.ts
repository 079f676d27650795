// What browsers lack and the engine uses: methods of the language, and turns of the event loop that do not wait, for a zero
// timeout takes 4 ms there.

import "../missing_methods.ts";

if (!("setImmediate" in globalThis)) {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  Object.defineProperty(globalThis, "setImmediate", {
    value(callback: () => void): void {
      waiting.push(callback);
      port2.postMessage(undefined);
    },
    configurable: true,
  });
}
