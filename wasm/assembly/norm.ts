// Normalisation of rows.
import { nextChunk, addressAt, u32At, f32At } from "./runtime";
import { RMS_NORM_X, RMS_NORM_W, RMS_NORM_Y, RMS_NORM_ROWS, RMS_NORM_COLUMNS, RMS_NORM_EPSILON, RMS_NORM_BASE } from "./generated/opcodes";

export function rms_norm(ip: usize): void {
  const rows = u32At(ip, RMS_NORM_ROWS);
  for (let c = nextChunk(ip, rows); c >= 0; c = nextChunk(ip, rows)) {
  }
}
