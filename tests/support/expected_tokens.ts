// What speculation comes to on average, from its definition (Leviathan et al. 2023, equation 1).

/** Tokens that a check of `k` proposals gives on average where each is right with chance `alpha`. */
export function expectedTokens(alpha: number, k: number): number {
  return alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha);
}
