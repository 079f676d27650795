// The outside world of the CLI: standard streams, signals, exit. Commands get a Terminal record and
// never touch `Deno.*` themselves, so tests can hand them another one. Nothing here needs a permission
// (NO_COLOR is read through `Deno.noColor`).

/** Exit code of what Ctrl-C ended. */
export const INTERRUPTED = 130;

/** What a command may do with the world. */
export interface Terminal {
  /** Standard output is a person's screen. */
  readonly screen: boolean;
  /** Standard error is a person's screen: progress may be drawn there. */
  readonly progress: boolean;
  /** Standard input is a keyboard. */
  readonly keyboard: boolean;
  /** Colours are wanted on standard output and standard error. */
  readonly colours: { readonly out: boolean; readonly err: boolean };
  /** Width of the screen in columns. */
  columns(): number;
  /** Writes to standard output, without adding a line end. */
  out(text: string): void;
  /** Writes to standard error, without adding a line end. */
  err(text: string): void;
  /** Next bytes of standard input, undefined at its end. */
  read(): Promise<Uint8Array | undefined>;
  /** Keys arrive one by one and unechoed; Ctrl-C is a key like others, unless `signals` is set. */
  setRaw(raw: boolean, signals?: boolean): void;
  /**
   * Calls `handler` at each Ctrl-C or SIGTERM until the returned function is called, with the exit code of who is ended by
   * it: 128 and the signal's number.
   */
  onInterrupt(handler: (code: number) => void): () => void;
}

/** SIGBREAK is Ctrl-Break. */
const EXIT_CODES = { SIGINT: INTERRUPTED, SIGBREAK: INTERRUPTED, SIGTERM: 143 } as const;

function writeAll(stream: typeof Deno.stdout, name: string, text: string): void {
  let bytes: Uint8Array = new TextEncoder().encode(text);
  try {
    while (bytes.length > 0) bytes = bytes.subarray(stream.writeSync(bytes));
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== "ENOSPC") throw cause;
    throw new Error(`${name}: the disk is full. Make room`, { cause });
  }
}

/** The real terminal. */
export function systemTerminal(): Terminal {
  const colours = !Deno.noColor;
  const screen = Deno.stdout.isTerminal();
  const progress = Deno.stderr.isTerminal();
  const buffer = new Uint8Array(65536);
  return {
    screen,
    progress,
    keyboard: Deno.stdin.isTerminal(),
    colours: { out: colours && screen, err: colours && progress },
    columns: () => {
      try {
        return Deno.consoleSize().columns || 80;
      } catch {
        return 80; // Not a terminal.
      }
    },
    out: (text) => writeAll(Deno.stdout, "standard output", text),
    err: (text) => writeAll(Deno.stderr, "standard error", text),
    read: async () => {
      const count = await Deno.stdin.read(buffer).catch((cause) => {
        throw new Error(`standard input: ${(cause as Error).message}`, { cause });
      });
      return count === null ? undefined : buffer.slice(0, count);
    },
    // Windows knows no such mode.
    setRaw: (raw, signals = false) =>
      Deno.stdin.setRaw(raw, { cbreak: signals && Deno.build.os !== "windows" }),
    onInterrupt: (handler) => {
      const signals = ["SIGINT", Deno.build.os === "windows" ? "SIGBREAK" : "SIGTERM"] as const;
      const listeners = signals.map((signal) =>
        [signal, () => handler(EXIT_CODES[signal])] as const
      );
      for (const [signal, listener] of listeners) Deno.addSignalListener(signal, listener);
      return () => {
        for (const [signal, listener] of listeners) Deno.removeSignalListener(signal, listener);
      };
    },
  };
}

/** Whether an error means that the reader of our output has gone (`troodon … | head`). */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Deno.errors.BrokenPipe;
}

/** Command line of the process. */
export function processArguments(): readonly string[] {
  return Deno.args;
}

/** Ends the process. */
export function exit(code: number): never {
  Deno.exit(code);
}
