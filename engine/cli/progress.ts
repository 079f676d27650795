// A progress bar on standard error: drawn on a screen, ten lines in a log, nothing with --json. It says
// what is happening, how far it is, how fast, and how long it will take.

import { showBytes, showSeconds } from "./format.ts";
import type { Terminal } from "./terminal.ts";

/** Draws progress. */
export interface ProgressBar {
  /** `done` of `total` bytes of the work called `label`; `total` may be unknown. */
  update(label: string, done: number, total: number | undefined): void;
  /** Leaves the screen as it was (the bar is wiped). */
  end(): void;
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/** A bar of eighths: exact to a 192nd. */
function bar(part: number): string {
  const eighths = Math.round(Math.min(1, part) * BAR_WIDTH * 8);
  const full = "█".repeat(eighths >> 3);
  return (full + " ▏▎▍▌▋▊▉"[eighths & 7]!).slice(0, BAR_WIDTH).padEnd(BAR_WIDTH, "·");
}

/** Makes a progress bar for one command. */
export function createProgressBar(terminal: Terminal, quiet: boolean): ProgressBar {
  let label = "";
  let started = 0;
  let startedAt = 0;
  let drawnAt = -Infinity;
  let tenth = -1;
  let drawn = false;

  function begin(name: string, done: number): void {
    label = name;
    started = performance.now();
    startedAt = done;
    drawnAt = -Infinity;
    tenth = -1;
  }

  function draw(done: number, total: number | undefined): void {
    const seconds = (performance.now() - started) / 1000;
    const rate = seconds > 0.5 ? (done - startedAt) / seconds : 0;
    const speed = rate > 0 ? `  ${showBytes(rate)}/s` : "";
    const left = rate > 0 && total ? `  ${showSeconds((total - done) / rate)} left` : "";
    const amount = total ? `${showBytes(done)} of ${showBytes(total)}` : showBytes(done);
    const gauge = total ? `${bar(done / total)} ` : "";
    const line = `${label}  ${gauge}${amount}${speed}${left}`.slice(0, terminal.columns() - 1);
    terminal.err(`\r\x1b[K${line}`);
    drawn = true;
  }

  function log(done: number, total: number | undefined): void {
    if (!total) return;
    const now = Math.floor(done / total * 10);
    if (now === tenth) return;
    tenth = now;
    terminal.err(`${label}: ${now * 10} % of ${showBytes(total)}\n`);
  }

  return {
    update(name, done, total) {
      if (quiet) return;
      if (name !== label) begin(name, done);
      if (!terminal.progress) return log(done, total);
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS && done !== total) return;
      drawnAt = now;
      draw(done, total);
    },
    end() {
      if (drawn) terminal.err("\r\x1b[K");
      drawn = false;
      label = "";
    },
  };
}
