/** Folds a text for comparison: one width, one case, composed (Unicode NFKC). */
export function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
