// Other names of formats. Inferflow's short names stand for the variants that its program takes for them;
// two of its blocks are ggml's, byte for byte. E0M4 and INT4 have 128 values in a group unless told.

/** Name in the table, by alias; all in capitals. */
export const ALIASES: Readonly<Record<string, string>> = {
  Q8_B32T2: "Q8_0", // f16 scale, 32 signed codes, scale = max / 127
  Q5_B32T1: "Q5_1", // f16 scale, f16 base, 32 high bits, nibbles of i and i + 16
  Q8: "Q8_0",
  Q6: "Q6_B64T1",
  Q5: "Q5_B64T1",
  Q4: "Q4_B32T1A",
  Q4_B32T1: "Q4_B32T1A",
  Q3H: "Q3H_B64T1",
  Q3: "Q3_B32T1B",
  Q3_B32T1: "Q3_B32T1B",
  Q2: "Q2_B32T1B",
  Q2_B32T1: "Q2_B32T1B",
  E0M4: "E0M4_G128",
  INT4: "INT4_G128",
  W8A8: "LF8",
};
