// `troodon perplexity`: how well a model predicts a text.

import { type Command, defineCommand } from "./command.ts";
import { LOAD_FLAGS, loadOptions } from "./flags.ts";
import { showSeconds } from "./format.ts";

/** The command. */
export const perplexityCommand: Command = defineCommand({
  name: "troodon perplexity",
  summary: "Measures how well a model predicts a text: lower is better.",
  positionals: ["MODEL"],
  flags: {
    text: { type: "string", value: "FILE", help: "text to predict; - or nothing: standard input" },
    window: { type: "integer", value: "N", min: 2, help: "tokens that are scored together (512)" },
    stride: { type: "integer", value: "N", min: 1, help: "from one window to the next (window)" },
    windows: { type: "integer", value: "N", min: 1, help: "most windows to score (all)" },
    ...LOAD_FLAGS,
  },
  examples: [
    ["troodon perplexity smollm2-135m --text book.txt", "of a whole text"],
    ["troodon perplexity model-q4.gguf --text book.txt --windows 8 --json", "of its beginning"],
  ],
  notes: [
    "Windows do not overlap and begin with the beginning-of-text token where the model has one. " +
    "Compare only figures of the same text, tokenizer and window.",
  ],
}, async (context, { positionals: [name], flags }) => {
  const { terminal, signal } = context;
  const { readText } = await import("./quant_policy.ts");
  const { textOrStdin } = await import("./stdin.ts");
  const fromStdin = flags.text === undefined || flags.text === "-";
  const text = fromStdin
    ? await textOrStdin(terminal, flags.text, "--text")
    : await readText(flags.text!);
  const window = flags.window ?? 512;
  const { openModel } = await import("./open_model.ts");
  const { perplexity } = await import("../pipelines/perplexity.ts");
  const options = { contextLength: window, logitRows: 32, ...loadOptions(flags) };
  using opened = await openModel(name, flags, options, context);
  const start = performance.now();
  let nll = 0, scored = 0;
  const { windows, ...result } = await perplexity(opened.model, text, {
    window,
    signal,
    ...flags.stride !== undefined && { stride: flags.stride },
    ...flags.windows !== undefined && { windows: flags.windows },
    onWindow(done) {
      nll += done.nll;
      scored += done.scored;
      if (!terminal.progress || flags.json) return;
      terminal.err(`\r\x1b[K${done.index + 1} windows: ${Math.exp(nll / scored).toFixed(3)}`);
    },
  });
  if (terminal.progress && !flags.json) terminal.err("\r\x1b[K");
  const seconds = (performance.now() - start) / 1000;
  if (flags.json) {
    const facts = { model: opened.name, device: opened.model.device, window };
    terminal.out(JSON.stringify({ ...facts, windows: windows.length, seconds, ...result }) + "\n");
  } else {
    const value = `${result.perplexity.toFixed(4)} ± ${result.standardError.toFixed(4)}`;
    terminal.out(
      `${value}  (${result.scored} tokens, ${windows.length} windows, ${showSeconds(seconds)})\n`,
    );
  }
  return 0;
});
